//! The workspace against real git and real origins in temporary folders. Nothing here reaches a network.

mod fixture;

mod gc;
mod hostile;
mod large_files;
mod life;
mod merge;
mod own;
mod parallel;
mod repos;
mod resume;
mod strategies;
mod submodules;
