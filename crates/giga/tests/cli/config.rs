//! Where settings come from, as `giga config show` tells it.

use serde_json::Value;

use crate::mask::mask;
use crate::world::{Home, giga, run};

fn origin(home: &Home, name: &str, change: impl FnOnce(&mut std::process::Command)) -> (String, String) {
    let mut command = giga(home.path());
    command.args(["config", "show", "-o", "jsonl"]);
    change(&mut command);
    let shown = run(&mut command).ok();
    let settings = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = settings.into_iter().find(|setting| setting["name"] == name).unwrap();
    (found["value"].as_str().unwrap().to_owned(), found["origin"].as_str().unwrap().to_owned())
}

#[test]
fn flag_before_environment_before_file_before_default() {
    let home = Home::new();
    assert_eq!(origin(&home, "product", |_| {}), ("-".to_owned(), "default".to_owned()));
    let file = home.write("giga.toml", "product = \"from-file\"\n");
    let (value, from) = origin(&home, "product", |_| {});
    assert_eq!(value, "from-file");
    assert!(from.ends_with(file.file_name().unwrap().to_str().unwrap()), "{from}");
    std::fs::create_dir_all(home.path().join("a/b")).unwrap();
    let deep = home.path().join("a/b");
    assert_eq!(
        origin(&home, "product", |c| {
            c.current_dir(deep);
        })
        .0,
        "from-file",
        "found upwards"
    );
    let set = |command: &mut std::process::Command| {
        command.env("GIGA_PRODUCT", "from-environment");
    };
    assert_eq!(
        origin(&home, "product", set),
        ("from-environment".to_owned(), "environment GIGA_PRODUCT".to_owned())
    );
    let flag = |command: &mut std::process::Command| {
        command.env("GIGA_PRODUCT", "from-environment").args(["--product", "from-flag"]);
    };
    assert_eq!(origin(&home, "product", flag), ("from-flag".to_owned(), "flag --product".to_owned()));
}

#[test]
fn the_whole_table_shows_no_secret() {
    let home = Home::new();
    let server = home.start();
    drop(server);
    home.write(".config/gigafactory/giga.toml", "store = \"postgres://giga:hush@db/giga\"\n");
    let shown =
        run(giga(home.path()).args(["config", "show"]).env("GIGA_LOG", "info").env("GIGA_FACTORY", "here"))
            .ok();
    let secret = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    assert!(!shown.contains(secret.trim()) && !shown.contains("hush"));
    insta::assert_snapshot!("config__show", crate::mask::squeeze(&mask(&shown, home.path())));
}

#[test]
fn a_wrong_setting_names_its_origin() {
    let home = Home::new();
    let wrong = run(giga(home.path()).args(["job", "list"]).env("GIGA_OUTPUT", "xml")).fails(2);
    assert!(wrong.contains("environment GIGA_OUTPUT: `xml` is not a format"), "{wrong}");
    home.write("giga.toml", "listen = \"127.0.0.1:1\"\nlisen = \"x\"\n");
    let wrong = home.giga(&["job", "list"]).fails(2);
    assert!(wrong.contains("giga.toml: there is no setting `lisen`; did you mean `listen`?"), "{wrong}");
}
