//! CPU kernels with a C ABI and a fixed summation order.
