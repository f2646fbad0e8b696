"""The reference of the SDKs: what the sources of three languages offer and say of it, side by side."""
