//! An engine by template: the operator says which program is called with which arguments.
//!
//! A placeholder is replaced inside its argument and the result stays one argument, whatever a job put into it.

use std::ffi::OsString;
use std::path::Path;

use giga_domain::FailReason;

use super::preflight::SignIn;
use super::{Call, Recipe};
use crate::engines::config::{CommandConfig, EventFormat};
use crate::engines::engine::EngineFailure;
use crate::engines::process::Probe;
use crate::sandbox::HostRule;

#[derive(Debug)]
pub(in crate::engines) struct Template {
    pub(in crate::engines) name: String,
    pub(in crate::engines) config: CommandConfig,
}

impl Recipe for Template {
    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> &Path {
        Path::new(self.config.argv.first().map_or("", String::as_str))
    }

    fn format(&self) -> EventFormat {
        self.config.events
    }

    fn variables(&self) -> Vec<&str> {
        self.config.pass_env.iter().map(String::as_str).collect()
    }

    fn hosts(&self) -> Vec<HostRule> {
        self.config.hosts.clone()
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        let argv = match (&self.config.resume_argv, call.session) {
            (Some(argv), Some(_)) => argv,
            _ => &self.config.argv,
        };
        if argv.first() != self.config.argv.first() {
            let detail = "`resume-argv` names another program than `argv`";
            return Err(EngineFailure::lasting(FailReason::NoEngine, detail));
        }
        Ok(argv.iter().skip(1).map(|argument| fill(argument, call)).collect())
    }

    fn version_args(&self) -> Option<Vec<OsString>> {
        None
    }

    fn sign_in(&self) -> SignIn {
        match self.config.check_argv.clone() {
            None => SignIn::Unneeded,
            Some(argv) => SignIn::Ask {
                remedy: format!("`{}` must end with 0; run it by hand to see why not", argv.join(" ")),
                args: argv.into_iter().skip(1).map(OsString::from).collect(),
                is_signed_in: |answer: &Probe| answer.succeeded,
            },
        }
    }

    fn how_to_install(&self) -> String {
        format!("`argv` of the engine `{}` must begin with a program that exists", self.name)
    }
}

/// One pass from left to right: what replaces a placeholder is not looked at again.
fn fill(argument: &str, call: &Call<'_>) -> OsString {
    let mut filled = OsString::new();
    let mut rest = argument;
    while let Some(start) = rest.find('{') {
        filled.push(&rest[..start]);
        rest = &rest[start..];
        let known: [(&str, OsString); 3] = [
            ("{prompt_file}", call.prompt_file.into()),
            ("{dir}", call.request.dir.clone().into()),
            ("{session}", call.session.unwrap_or_default().into()),
        ];
        if let Some((name, value)) = known.into_iter().find(|(name, _)| rest.starts_with(name)) {
            filled.push(value);
            rest = &rest[name.len()..];
        } else {
            filled.push("{");
            rest = &rest[1..];
        }
    }
    filled.push(rest);
    filled
}
