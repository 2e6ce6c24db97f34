//! `giga engine try`, with engines that are scripts.

use serde_json::Value;

use crate::world::{Home, giga, run};

const SETTINGS: &str = r#"
[engines.commands.good]
argv = ["sh", "-c", "grep -q 'hello from giga' \"$GIGA_PROMPT_FILE\" && echo 'hello from giga' > GIGA_TRY.txt"]

[engines.commands.idle]
argv = ["sh", "-c", "echo done"]

[engines.commands.dear]
argv = ["sh", "-c", "echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\",\"model\":\"claude-sonnet-4-6\"}'; echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"I write.\"}],\"usage\":{\"input_tokens\":1000}}}'; sleep 60"]
events = "claude"
"#;

#[test]
fn an_engine_is_tried_out_without_a_coordinator() {
    let home = Home::new();
    home.write(".config/gigafactory/giga.toml", SETTINGS);
    let try_out = |args: &[&str]| {
        let mut command = giga(home.path());
        command.args(["engine", "try"]).args(args);
        run(&mut command)
    };
    let good = try_out(&["good", "-o", "json"]);
    assert_eq!(good.code, Some(0), "{good:#?}");
    let found: Value = serde_json::from_str(&good.out).unwrap();
    assert_eq!((&found["outcome"], &found["edited"]), (&"succeeded".into(), &true.into()), "{found}");

    let idle = try_out(&["idle"]);
    assert_eq!(idle.code, Some(1), "it says that it is done, and is not: {idle:#?}");
    assert!(idle.out.contains("edited   no"), "{idle:#?}");

    let dear = try_out(&["dear", "--cap", "0.001"]);
    assert_eq!(dear.code, Some(1), "{dear:#?}");
    for words in ["outcome  ", "tokens   1000", "cost     $0.003", "session  s-1"] {
        assert!(dear.out.contains(words), "{words}: {dear:#?}");
    }
    assert!(dear.err.contains("I write."), "as people read it: {dear:#?}");

    let unknown = try_out(&["nobody"]);
    assert!(unknown.err.contains("there is no engine `nobody`; there are shell, claude"), "{unknown:#?}");
    let data = home.path().join(".local/share/gigafactory");
    let left = std::fs::read_dir(data).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("try-")).collect();
    assert!(left.is_empty(), "{left:?}");
}
