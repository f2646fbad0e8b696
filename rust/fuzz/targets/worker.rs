//! A worker for the tests.

fn main() {
    pie_host::compile_worker()
}
