//! How each engine is pointed at the scripted model: by what an operator would set, and nothing else.

use giga_factory::engines::{Price, Program};

/// What every engine is signed in with.
pub(crate) const KEY: &str = "dummy-key-for-the-matrix";

/// Dollars per million tokens of [`model`], where the engine does not price it by itself.
pub(crate) const PRICE: Price = Price { input: 3.0, cached_input: 0.3, output: 15.0 };

/// The operator's choice. Claude Code has its own price for it, which is [`PRICE`].
pub(crate) const fn model(engine: Program) -> &'static str {
    match engine {
        Program::Claude => "claude-sonnet-4-5",
        Program::Codex => "gpt-5-matrix",
        Program::Opencode => "scripted/matrix-1",
        Program::Gemini => "gemini-2.5-pro",
    }
}

/// A job's choice.
pub(crate) const fn other_model(engine: Program) -> &'static str {
    match engine {
        Program::Claude => "claude-opus-4-5",
        Program::Codex => "gpt-5-other",
        Program::Opencode => "scripted/matrix-2",
        Program::Gemini => "gemini-2.5-flash",
    }
}

/// Why nobody can know when a quota opens again, for an engine that keeps to itself what the provider said about it. Looked for in
/// what it prints, in its log, in its session and in its report of the error.
pub(crate) const fn withheld_reset(engine: Program) -> Option<&'static str> {
    match engine {
        Program::Opencode => Some(
            "opencode prints and logs the message of the provider's error, and neither its headers nor its body, where the time is; \
             its database has no trace of the error",
        ),
        Program::Gemini => Some(
            "of a quota per day Gemini CLI drops the `retryDelay` of the error before it prints or reports anything; the time of \
             other quotas (`Suggested retry after …`) is read",
        ),
        Program::Claude | Program::Codex => None,
    }
}

/// As the server hears it.
pub(crate) fn asked_as(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// Variables of the factory's environment. A subscription is signed in with another kind of key than an account that pays by
/// use, where the engine knows both.
pub(crate) fn variables(engine: Program, url: &str, subscription: bool) -> Vec<(&'static str, String)> {
    let key = KEY.to_owned();
    match engine {
        Program::Claude => vec![
            (if subscription { "CLAUDE_CODE_OAUTH_TOKEN" } else { "ANTHROPIC_API_KEY" }, key),
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            // The cells have no minutes to spend on its patience.
            ("CLAUDE_CODE_MAX_RETRIES", "2".to_owned()),
        ],
        Program::Codex => vec![("OPENAI_API_KEY", key)],
        Program::Gemini => vec![("GEMINI_API_KEY", key), ("GOOGLE_GEMINI_BASE_URL", url.to_owned())],
        Program::Opencode => Vec::new(),
    }
}

/// Of [`variables`], those that an operator has to name in `pass-env`.
pub(crate) fn pass_env(engine: Program) -> Vec<String> {
    match engine {
        Program::Claude => vec!["CLAUDE_CODE_MAX_RETRIES".to_owned()],
        _ => Vec::new(),
    }
}

/// Files of the operator's home.
pub(crate) fn home_files(engine: Program, url: &str) -> Vec<(&'static str, String)> {
    match engine {
        Program::Claude => Vec::new(),
        Program::Codex => {
            let provider = format!(
                "model_provider = \"scripted\"\n[model_providers.scripted]\nname = \"Scripted\"\nbase_url = \"{url}/v1\"\n\
                 wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\nrequest_max_retries = 1\nstream_max_retries = 1\n"
            );
            vec![(".codex/config.toml", provider)]
        }
        Program::Gemini => {
            let settings =
                r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"maxAttempts":2}}"#;
            vec![(".gemini/settings.json", settings.to_owned())]
        }
        Program::Opencode => {
            let provider = serde_json::json!({
                "model": model(engine), "autoupdate": false, "share": "disabled",
                "provider": { "scripted": {
                    "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
                    "options": { "baseURL": format!("{url}/v1"), "apiKey": KEY },
                    "models": { "matrix-1": { "name": "matrix-1" }, "matrix-2": { "name": "matrix-2" } },
                } },
            });
            vec![(".config/opencode/opencode.json", provider.to_string())]
        }
    }
}
