//! Git on the worker: one mirror per repository, one worktree per job, refs that carry the epoch.
