//! What the model does, turn by turn.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    /// In order. After the last one the model has nothing more to do and says so.
    pub turns: Vec<Turn>,
    /// What goes wrong, and when.
    #[serde(default)]
    pub troubles: Vec<Trouble>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Turn {
    #[serde(default)]
    pub say: String,
    /// A turn without any is the last one of a run.
    #[serde(default, rename = "do")]
    pub acts: Vec<Act>,
    #[serde(default)]
    pub usage: Usage,
}

/// What a tool is used for. Which tool that is, the engine says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    Read {
        path: String,
    },
    Write {
        path: String,
        content: String,
    },
    Run(String),
    /// A tool of a server that the engine was told of (MCP), by its own name: engines put theirs before it.
    Call {
        tool: String,
        input: serde_json::Value,
    },
}

/// What a turn costs. The protocols count differently; here `input` is what was neither read from nor written to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub cache_read: u64,
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1_000, cache_read: 0, output: 50 }
    }
}

/// Something goes wrong when the model is asked for a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trouble {
    /// From 0.
    pub turn: usize,
    /// How often; then the turn goes through.
    #[serde(default = "always")]
    pub times: u32,
    pub kind: TroubleKind,
}

fn always() -> u32 {
    u32::MAX
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// The key is wrong or was revoked.
    SignedOut,
    /// Too much at the moment. `reset_secs` is when it may be tried again, where the provider says.
    RateLimited {
        reset_secs: Option<u64>,
    },
    /// The account's window is used up.
    QuotaExhausted {
        reset_secs: Option<u64>,
    },
    Overloaded,
    ContextTooLong,
    /// The model declines.
    Refusal,
    /// No answer at all.
    Silence,
    /// Words without end.
    Endless,
    /// The connection ends in the middle of an answer.
    Cut,
}

impl Script {
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// One that writes a file and says so.
    pub fn writes(path: &str, content: &str) -> Self {
        let write = Act::Write { path: path.to_owned(), content: content.to_owned() };
        Self {
            turns: vec![
                Turn { say: "I will write it.".to_owned(), acts: vec![write], usage: Usage::default() },
                Turn { say: "Done.".to_owned(), ..Turn::default() },
            ],
            troubles: Vec::new(),
        }
    }

    pub(crate) fn turn(&self, index: usize) -> Turn {
        let over = || Turn { say: "There is nothing more to do.".to_owned(), ..Turn::default() };
        self.turns.get(index).cloned().unwrap_or_else(over)
    }
}
