//! What only the whole system can show: a coordinator, a factory, a repository, and the real engine in a job.

use anyhow::{Result, bail};

use crate::bench::Bench;

pub(crate) async fn commit_and_verify(_bench: &Bench) -> Result<()> {
    bail!("not written yet")
}

pub(crate) async fn changes_requested(_bench: &Bench) -> Result<()> {
    bail!("not written yet")
}

pub(crate) async fn resume_after_kill(_bench: &Bench) -> Result<()> {
    bail!("not written yet")
}
