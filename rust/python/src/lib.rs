//! The Python module pie._engine: converts and forwards, nothing else.
