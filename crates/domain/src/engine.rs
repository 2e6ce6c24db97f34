//! Which engines a job may use, and which of them runs it on a machine.
//!
//! [`EngineChoice::choose`] is the only place that chooses: the scheduler asks it with what the coordinator knows of a
//! factory, and the factory asks it again, with what it knows by then, when it starts the run.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Capability, Timestamp};

/// The engine that runs scripts. It reads no prompts, so it never stands in for one that does.
pub const SHELL: &str = "shell";

/// An engine that a job may use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnginePick {
    pub name: String,
    /// Instead of the one that the operator chose for the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl EnginePick {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), model: None }
    }

    /// What a factory must have for it.
    pub fn capability(&self) -> Capability {
        Capability::engine(&self.name).expect("an engine is a word, and every word is a capability")
    }
}

impl fmt::Display for EnginePick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(f, "{} ({model})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// In order of preference. Empty: any engine that reads prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EngineChoice(Vec<EnginePick>);

impl EngineChoice {
    pub const ANY: Self = Self(Vec::new());

    pub const fn new(picks: Vec<EnginePick>) -> Self {
        Self(picks)
    }

    pub fn one(name: impl Into<String>) -> Self {
        Self(vec![EnginePick::named(name)])
    }

    pub const fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    pub fn picks(&self) -> &[EnginePick] {
        &self.0
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|pick| pick.name.as_str())
    }

    pub fn has(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    /// The only one, where there is no choice.
    pub fn single(&self) -> Option<&EnginePick> {
        match self.0.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    pub fn first(&self) -> Option<&EnginePick> {
        self.0.first()
    }

    /// Those of which one is needed, where there are several. One alone, and any, are capabilities like others.
    pub fn alternatives(&self) -> &[EnginePick] {
        if self.0.len() > 1 { &self.0 } else { &[] }
    }

    /// Whether it says more than older factories understand: one name.
    pub fn needs_choice(&self) -> bool {
        self.0.len() > 1 || self.0.iter().any(|pick| pick.model.is_some())
    }

    /// The first that is here and open. `here` is in the order in which `any` is to be tried.
    pub fn choose<'a>(&'a self, here: &'a [EngineHere<'a>]) -> Result<Chosen<'a>, Vec<PassedOver>> {
        let mut passed_over = Vec::new();
        if self.is_any() {
            for engine in here.iter().filter(|engine| engine.name != SHELL) {
                match engine.access.closed() {
                    None => return Ok(Chosen { engine: engine.name, model: None, passed_over }),
                    Some(why) => passed_over.push(PassedOver::new(engine.name, why)),
                }
            }
            return Err(passed_over);
        }
        for pick in &self.0 {
            let found = here.iter().find(|engine| engine.name == pick.name);
            match found.map_or(Some(NotUsed::Missing), |engine| engine.access.closed()) {
                None => {
                    return Ok(Chosen { engine: &pick.name, model: pick.model.as_deref(), passed_over });
                }
                Some(why) => passed_over.push(PassedOver::new(&pick.name, why)),
            }
        }
        Err(passed_over)
    }
}

impl From<&str> for EngineChoice {
    fn from(name: &str) -> Self {
        Self::one(name)
    }
}

/// `any`, or the names in order.
impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str(Capability::ANY_ENGINE);
        }
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&names.join(", "))
    }
}

/// How a choice is written: one name as text, as it always was.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    // Before the map: a list of two names would do for one, too.
    Several(Vec<PickWritten>),
    One(EnginePick),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PickWritten {
    Name(String),
    Pick(EnginePick),
}

impl From<EnginePick> for PickWritten {
    fn from(pick: EnginePick) -> Self {
        if pick.model.is_some() { Self::Pick(pick) } else { Self::Name(pick.name) }
    }
}

impl Serialize for EngineChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [] => serializer.serialize_none(),
            [EnginePick { name, model: None }] => serializer.serialize_str(name),
            [one] => one.serialize(serializer),
            several => serializer.collect_seq(several.iter().cloned().map(PickWritten::from)),
        }
    }
}

impl<'de> Deserialize<'de> for EngineChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pick = |written| match written {
            PickWritten::Name(name) => EnginePick::named(name),
            PickWritten::Pick(pick) => pick,
        };
        Ok(match Option::<Written>::deserialize(deserializer)? {
            None => Self::ANY,
            Some(Written::Name(name)) => Self::one(name),
            Some(Written::One(one)) => Self(vec![one]),
            Some(Written::Several(several)) => Self(several.into_iter().map(pick).collect()),
        })
    }
}

/// Whether an engine that is on a machine can be given work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Open,
    OutOfQuota { until: Timestamp },
    SignedOut,
}

impl Access {
    const fn closed(self) -> Option<NotUsed> {
        match self {
            Self::Open => None,
            Self::OutOfQuota { until } => Some(NotUsed::OutOfQuota { until: Some(until) }),
            Self::SignedOut => Some(NotUsed::SignedOut),
        }
    }
}

/// An engine on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineHere<'a> {
    pub name: &'a str,
    pub access: Access,
}

/// What runs the job, and what was preferred to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen<'a> {
    pub engine: &'a str,
    pub model: Option<&'a str>,
    pub passed_over: Vec<PassedOver>,
}

/// An engine that would have been taken first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PassedOver {
    pub engine: String,
    #[serde(flatten)]
    pub why: NotUsed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotUsed {
    /// It is not on the machine, or not ready there.
    Missing,
    SignedOut,
    OutOfQuota {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
}

impl PassedOver {
    pub fn new(engine: impl Into<String>, why: NotUsed) -> Self {
        Self { engine: engine.into(), why }
    }
}

/// `claude is out of quota until …`.
impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = &self.engine;
        match self.why {
            NotUsed::Missing => write!(f, "{engine} is not there"),
            NotUsed::SignedOut => write!(f, "{engine} is signed out"),
            NotUsed::OutOfQuota { until: Some(until) } => write!(f, "{engine} is out of quota until {until}"),
            NotUsed::OutOfQuota { until: None } => write!(f, "{engine} is out of quota"),
        }
    }
}

/// What a run is done with, as its holder says when it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineUse {
    pub engine: String,
    /// As far as it is known by then.
    pub model: Option<String>,
    pub passed_over: Vec<PassedOver>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Timestamp = Timestamp::from_millis(5_000);

    fn here<'a>(engines: &[(&'a str, Access)]) -> Vec<EngineHere<'a>> {
        engines.iter().map(|&(name, access)| EngineHere { name, access }).collect()
    }

    fn list(names: &[&str]) -> EngineChoice {
        EngineChoice::new(names.iter().map(|name| EnginePick::named(*name)).collect())
    }

    #[test]
    fn the_first_that_is_there_and_open_is_taken_and_the_others_are_named() {
        let out = Access::OutOfQuota { until: LATER };
        let machine = here(&[("shell", Access::Open), ("claude", out), ("codex", Access::Open)]);
        let taken = list(&["gemini", "claude", "codex"]);
        let taken = taken.choose(&machine).unwrap();
        assert_eq!(taken.engine, "codex");
        let said: Vec<String> = taken.passed_over.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["gemini is not there", "claude is out of quota until 1970-01-01T00:00:05.000Z"]);

        let refused = list(&["claude", "gemini"]).choose(&machine).unwrap_err();
        assert_eq!(refused.len(), 2, "{refused:?}");
    }

    #[test]
    fn any_is_any_that_reads_prompts_in_the_order_of_the_machine() {
        let machine =
            here(&[("shell", Access::Open), ("codex", Access::SignedOut), ("claude", Access::Open)]);
        assert_eq!(EngineChoice::ANY.choose(&machine).unwrap().engine, "claude");
        assert_eq!(EngineChoice::ANY.choose(&machine[..2]).unwrap_err().len(), 1);
        assert_eq!(EngineChoice::ANY.choose(&machine[..1]).unwrap_err(), []);
    }

    #[test]
    fn a_model_goes_with_its_engine() {
        let picks = vec![
            EnginePick { name: "claude".to_owned(), model: Some("opus".to_owned()) },
            EnginePick::named("codex"),
        ];
        let choice = EngineChoice::new(picks);
        let both = here(&[("claude", Access::Open), ("codex", Access::Open)]);
        assert_eq!(choice.choose(&both).unwrap().model, Some("opus"));
        assert_eq!(choice.choose(&both[1..]).unwrap().model, None);
    }

    #[test]
    fn one_name_is_written_as_it_always_was() {
        for (choice, written) in [
            (EngineChoice::ANY, "null"),
            (EngineChoice::one("claude"), r#""claude""#),
            (list(&["claude", "codex"]), r#"["claude","codex"]"#),
            (
                EngineChoice::new(vec![
                    EnginePick { name: "claude".to_owned(), model: Some("opus".to_owned()) },
                    EnginePick::named("codex"),
                ]),
                r#"[{"name":"claude","model":"opus"},"codex"]"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&choice).unwrap(), written);
            assert_eq!(serde_json::from_str::<EngineChoice>(written).unwrap(), choice);
        }
    }
}
