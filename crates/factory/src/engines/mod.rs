//! Coding engines behind one trait: headless, watched, and killed with everything they started.
