//! Codex. It has a sandbox of its own, which cannot be set up inside ours (seen with 0.169: every command fails in it), and
//! ours is the narrower one: so it does without where there is one. Where there is none, its own lets it write in the work tree
//! and in a folder for temporary files that goes with the run, and not in `/tmp`, which it would share with everybody.
//!
//! It would mark a folder that it may write as trusted, obey the settings in it, and leave that mark behind. In one that is
//! not trusted it reads no AGENTS.md either.
//!
//! Commands are its shell tool. Without it (`permissions: edit` and below) it edits with `apply_patch`, which it offers only to
//! models that its own list knows; any other model cannot edit then (seen with 0.169).
//!
//! The sandbox and the folder are options of `exec` and must stand before `resume`, which does not take them.

mod events;
mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use giga_domain::Permissions;
use serde_json::Value;

use super::{Call, Cli, SignIn, arguments};
use crate::engines::config::ProgramConfig;
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::{HostEnvironment, JournalFiles, Probe};
use crate::sandbox::HomeFile;

pub(super) struct Codex;

impl Cli for Codex {
    fn variables(&self) -> &[&'static str] {
        &["OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"]
    }

    fn home_files(&self) -> &'static [HomeFile] {
        &[HomeFile {
            folder: ".codex",
            variable: Some(("CODEX_HOME", "")),
            copied: &["auth.json", "config.toml"],
            kept: &["sessions"],
        }]
    }

    fn hosts(&self) -> &[&'static str] {
        &["api.openai.com", "auth.openai.com", "chatgpt.com"]
    }

    fn address_variables(&self) -> &[&'static str] {
        &["OPENAI_BASE_URL"]
    }

    fn instruction_files(&self) -> &[&'static str] {
        &["AGENTS.md"]
    }

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["exec", "--json", "--skip-git-repo-check"]);
        args.extend(without_commands(call.request.permissions).iter().map(OsString::from));
        if call.request.permissions == Some(Permissions::Ask) {
            args.extend(arguments(["-s", "read-only"]));
        } else if call.sandboxed {
            args.extend(arguments(["-s", "danger-full-access"]));
        } else {
            args.extend(arguments(["-s", "workspace-write"]));
            args.extend(own_temporary_folder(call.scratch)?);
        }
        args.extend(["-C".into(), call.request.dir.clone().into()]);
        if !call.obeys_repository {
            args.extend(["-c".into(), untrusted(&call.request.dir)]);
        }
        args.extend(config.options("-m"));
        if call.session.is_some() {
            args.push("resume".into());
        }
        args.push("--".into());
        args.extend(call.session.map(OsString::from));
        // A lone dash stands for standard input.
        args.push("-".into());
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::LookThenAsk {
            is_signed_in_by_settings: |host| settings::Settings::of(host).is_signed_in(host),
            args: arguments(["login", "status"]),
            is_signed_in: |answer: &Probe| answer.succeeded,
            remedy: "run `codex login`, or set CODEX_API_KEY for the factory".to_owned(),
        }
    }

    fn address_in_settings(&self, host: &HostEnvironment) -> Option<String> {
        settings::Settings::of(host).address
    }

    fn how_to_install(&self) -> &'static str {
        "install Codex: npm install -g @openai/codex"
    }

    fn read(&self, event: &Value) -> Vec<LineEvent> {
        events::read(event)
    }

    /// Its adapter sends each warning as one piece of what the agent says (0.16.0).
    fn is_notice(&self) -> Option<fn(&str) -> bool> {
        Some(|text| {
            let unknown_model =
                text.starts_with("Model metadata for `") && text.contains("fallback metadata");
            unknown_model || text.starts_with("Heads up: Long threads and multiple compactions")
        })
    }

    /// `sessions/2026/11/18/rollout-<time>-<session>.jsonl`
    fn journal(&self) -> Option<JournalFiles> {
        Some(JournalFiles {
            folder: ".codex",
            variable: Some("CODEX_HOME"),
            kept: "sessions",
            depth: 3,
            prefix: "rollout-",
            named_by: 36,
        })
    }

    fn read_journal(&self, entry: &Value) -> Vec<LineEvent> {
        events::read_journal(entry)
    }
}

const fn without_commands(allowed: Option<Permissions>) -> &'static [&'static str] {
    match allowed {
        Some(Permissions::Ask | Permissions::Edit) => {
            &["--disable", "shell_tool", "--disable", "unified_exec"]
        }
        None | Some(Permissions::Commands | Permissions::All) => &[],
    }
}

fn own_temporary_folder(scratch: &Path) -> Result<Vec<OsString>, EngineFailure> {
    let folder = scratch.join("tmp");
    std::fs::create_dir_all(&folder).map_err(|error| super::no_scratch(&error))?;
    // A string of JSON is one of TOML.
    let name = Value::from(folder.to_string_lossy().into_owned());
    let writable =
        "sandbox_workspace_write={exclude_slash_tmp=true,exclude_tmpdir_env_var=true,writable_roots=[";
    Ok(vec![
        "-c".into(),
        format!("{writable}{name}]}}").into(),
        "-c".into(),
        format!("shell_environment_policy.set={{TMPDIR={name}}}").into(),
    ])
}

/// By the folder's name as it was given and as the system has it.
fn untrusted(dir: &Path) -> OsString {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mut names = vec![dir.to_owned(), real];
    names.dedup();
    let entry = |path: &PathBuf| {
        // A string of JSON is one of TOML.
        format!("{}={{trust_level=\"untrusted\"}}", Value::from(path.to_string_lossy().into_owned()))
    };
    format!("projects={{{}}}", names.iter().map(entry).collect::<Vec<_>>().join(",")).into()
}
