//! The sandbox as people meet it: `giga sandbox try`, `giga doctor`, `giga up`, and a factory that refuses to start.

use serde_json::Value;

use crate::bench::up;
use crate::world::{Home, giga, run};

#[test]
fn people_can_look_around_in_it() {
    let home = Home::new();
    home.write(".ssh/id_ed25519", "secret");
    home.write("tools/hammer", "granted");
    let inside = |args: &[&str], script: &str| {
        let mut command = giga(home.path());
        command.args(["sandbox", "try"]).args(args).args(["--", "sh", "-c", script]);
        run(&mut command)
    };
    let key = home.path().join(".ssh/id_ed25519");
    assert_ne!(inside(&[], &format!("cat {}", key.display())).code, Some(0));
    let plain = inside(&[], "echo $HOME; exit 7");
    assert_eq!(plain.code, Some(7), "{plain:#?}");
    assert!(!plain.out.contains(home.path().to_str().unwrap()), "the home is a private one: {plain:#?}");
    for word in ["sandbox  bubblewrap", "tree ", "home ", "network  open", "memory 16 GiB"] {
        assert!(plain.err.contains(word), "{word}: {plain:#?}");
    }
    let tools = home.path().join("tools");
    let granted = inside(&["--sandbox-read", "~/tools"], "cat ~/tools/hammer; echo x > ~/tools/hammer");
    assert_eq!(granted.out, "granted", "{granted:#?}");
    assert_ne!(granted.code, Some(0), "it may only be read");
    assert_eq!(std::fs::read_to_string(tools.join("hammer")).unwrap(), "granted");
    let bounded = inside(
        &["--sandbox-open-files", "77", "--network", "none"],
        "ulimit -n; ls /sys/class/net; cat /proc/net/dev",
    );
    assert!(bounded.out.starts_with("77\n") && !bounded.out.contains("eth"), "{bounded:#?}");
}

#[test]
fn the_doctor_says_how_isolated_jobs_are() {
    let home = Home::new();
    let finding = |args: &[(&str, &str)]| {
        let mut command = giga(home.path());
        command.args(["doctor", "-o", "json"]).envs(args.iter().copied());
        let found: Value = serde_json::from_str(&run(&mut command).out).unwrap();
        found["findings"].as_array().unwrap().iter().find(|one| one["kind"] == "sandbox").unwrap().clone()
    };
    let ready = finding(&[]);
    assert_eq!(ready["state"], "ready", "{ready}");
    assert!(ready["detail"].as_str().unwrap().starts_with("bubblewrap "), "{ready}");
    let off = finding(&[("GIGA_SANDBOX", "off")]);
    assert_eq!(off["state"], "missing", "{off}");
    assert!(off["detail"].as_str().unwrap().contains("with the rights of the factory"), "{off}");
}

/// A path with what a factory needs, and no bubblewrap.
fn without_bubblewrap(home: &Home) -> String {
    let folder = home.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    for program in ["git", "sh", "true"] {
        let path = std::env::var_os("PATH").unwrap();
        let found =
            std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
        std::os::unix::fs::symlink(found.unwrap(), folder.join(program)).unwrap();
    }
    folder.display().to_string()
}

#[test]
fn no_sandbox_no_factory() {
    let home = Home::new();
    let path = without_bubblewrap(&home);
    let _server = home.start();
    for args in [["--sandbox", "require"], ["--network", "none"]] {
        let mut command = giga(home.path());
        command.args(["factory", "run", "--once"]).args(args).env("PATH", &path);
        let refused = run(&mut command).fails(1);
        assert!(refused.contains("there is none: bubblewrap is not installed"), "{refused}");
    }
    let mut command = giga(home.path());
    let said = run(command.args(["factory", "run", "--once"]).env("PATH", &path));
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert!(said.err.contains("WARN") && said.err.contains("bubblewrap is not installed"), "{said:#?}");
}

#[test]
fn factories_of_up_have_tokens_of_their_own() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("repos")).unwrap();
    for start in ["the first", "a later"] {
        let server = up(&home, &["--factories", "2"]);
        home.giga(&["job", "init", "hello.md"]).ok();
        let name = format!("hello-{}", start.replace(' ', "-"));
        let manifest = std::fs::read_to_string(home.path().join("hello.md")).unwrap();
        let manifest = home.write("named.md", manifest.replace("name: hello", &format!("name: {name}")));
        home.giga(&["job", "submit", manifest.to_str().unwrap()]).ok();
        home.giga(&["job", "wait", &name, "--until", "testing"]).ok();
        let lines = processes(home.path().to_str().unwrap());
        assert!(lines.iter().any(|line| line.contains("local-1")), "{start} start: {lines:#?}");
        assert!(lines.iter().all(|line| !line.contains("admin.token")), "{start} start: {lines:#?}");
        for factory in ["local-1", "local-2"] {
            let token = home.data().join("factory").join(factory).join("factory.token");
            let token = std::fs::read_to_string(token).unwrap();
            assert!(token.starts_with("giga_factory_"), "{start} start");
        }
        assert_eq!(server.stop("INT").code(), Some(0));
        std::fs::remove_file(home.path().join("hello.md")).unwrap();
    }
}

/// What the factories of this home were started with, their environments included.
fn processes(home: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let read = |folder: std::path::PathBuf, name: &str| {
        let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    all.map(|entry| format!("{} {}", read(entry.path(), "cmdline"), read(entry.path(), "environ")))
        .filter(|line| line.contains("factory run") && line.contains(home))
        .collect()
}
