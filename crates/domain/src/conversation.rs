//! What a job and people say to each other: the job's questions, people's answers and messages.
//!
//! All of it is a part of the job and changes through [`crate::transition()`] only, so that one epoch fences asking as it fences
//! everything else. Whether somebody may answer or say something at all is asked before, by the caller's role.

use crate::word::words;

words! {
    "question kind",
    #[derive(Default)]
    pub enum QuestionKind {
        /// Something that the engine wants to know. Answered with one of the options, or in other words.
        #[default]
        Question,
        /// Something that the engine wants to do. Answered with one of the options.
        Permission,
    }
}

words! {
    "permissions",
    /// What an engine may do without asking. Ordered: `Ask` sorts first and allows least.
    pub enum Permissions {
        /// Read the work tree, and nothing else.
        Ask,
        /// Change files of the work tree, too.
        Edit,
        /// Run commands in the sandbox, too.
        Commands,
        /// Whatever its tools can do in the sandbox.
        All,
    }
}
