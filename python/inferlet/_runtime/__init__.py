"""The Python language runtime: what turns the SDK and CPython into a component that runs programs from source."""
