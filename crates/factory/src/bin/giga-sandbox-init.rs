//! `giga sandbox-init` for the tests of this crate, which have no `giga`.

fn main() -> std::process::ExitCode {
    giga_factory::sandbox::init::run(std::env::args_os().skip(1))
}
