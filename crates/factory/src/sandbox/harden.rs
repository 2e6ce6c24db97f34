//! What the agent's own process gives up, so that nothing it runs can look into it or gain rights by it.

/// Not to be dumped, nor read through `/proc` or ptrace by processes of the same user; and no program that it starts gets
/// more rights than it has. The second is the calling thread's and what that starts, so this is called before any other
/// thread is.
#[cfg(target_os = "linux")]
pub fn harden_this_process() -> std::io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// Other systems have their own ways.
#[cfg(not(target_os = "linux"))]
pub fn harden_this_process() -> std::io::Result<()> {
    Ok(())
}
