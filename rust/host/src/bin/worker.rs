//! A worker by itself, for hosts without Python: [`pie_host::HostConfig::compiler`] is the path of this program.

fn main() {
    pie_host::compile_worker()
}
