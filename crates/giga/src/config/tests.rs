//! Precedence, discovery, and where a token may go.

use std::collections::HashMap;

use giga_domain::token::TokenSecret;
use giga_factory::engines::Program;

use super::*;

struct World {
    folder: tempfile::TempDir,
    variables: HashMap<String, String>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("home/project/deep")).unwrap();
        let variables =
            HashMap::from([("HOME".to_owned(), folder.path().join("home").display().to_string())]);
        Self { folder, variables }
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.folder.path().join("home").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn load(&self, flags: &[(Key, &str)]) -> Result<Settings, CliError> {
        let variables = self.variables.clone();
        let surroundings = Surroundings {
            environment: Box::new(move |name| variables.get(name).cloned()),
            working_folder: self.folder.path().join("home/project/deep"),
        };
        Settings::load(flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect(), surroundings)
    }
}

fn token(byte: u8) -> String {
    TokenSecret::from_random("user", [byte; 32]).reveal().to_owned()
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let bare = World::new();
    assert_eq!(bare.load(&[]).unwrap().listen().origin, Origin::Default);

    let world = World::new().file(".config/gigafactory/giga.toml", "listen = \"file:1\"\n");
    let from_file = world.load(&[]).unwrap().listen();
    assert_eq!(from_file.value, "file:1");
    assert!(matches!(from_file.origin, Origin::File(_)));

    let world = world.set("GIGA_LISTEN", "environment:1");
    assert_eq!(world.load(&[]).unwrap().listen().origin, Origin::Environment("GIGA_LISTEN"));
    let flagged = world.load(&[(Key::Listen, "flag:1")]).unwrap().listen();
    assert_eq!(flagged, Setting { value: "flag:1".to_owned(), origin: Origin::Flag("--listen") });
}

#[test]
fn the_project_goes_before_the_user_before_the_data_folder() {
    let world = World::new()
        .file("project/giga.toml", "product = \"project\"")
        .file(".config/gigafactory/giga.toml", "product = \"user\"\noutput = \"json\"")
        .file(".local/share/gigafactory/giga.toml", "output = \"name\"\nlog = \"debug\"");
    let settings = world.load(&[]).unwrap();
    assert_eq!(settings.product().unwrap().value, "project");
    assert_eq!(settings.output().value, "json");
    assert_eq!(settings.log("warn").value, "debug");
}

#[test]
fn a_file_that_is_wrong_says_where() {
    let refused =
        |text: &str| World::new().file("project/giga.toml", text).load(&[]).err().unwrap().to_string();
    assert!(refused("x = 1\nurl = = 2").contains("giga.toml:2: "));
    assert!(refused("ulr = \"x\"").ends_with("there is no setting `ulr`; did you mean `url`?"));
    assert!(refused("seats = \"2\"\nfactories = true").contains("`factories` must be a number"));
    assert!(refused("git-allow = 5").contains("`git-allow` must be a list of text"));
    assert!(refused("[engines]\nclaud = 5").contains("giga.toml: [engines]: unknown field `claud`"));
    assert!(refused("url = 5").ends_with("`url` must be text, such as url = \"…\""));
    assert!(refused("token = \"x\"").contains("token-file"));
}

#[test]
fn a_project_has_no_say_in_the_sandbox() {
    let sandbox = |settings: &Settings| {
        settings.sandbox_mode().map(drop)?;
        settings.sandbox_limits().map(drop)?;
        settings.network_mode().map(drop)?;
        settings.network_hosts().map(drop)?;
        settings.commands().map(drop)
    };
    for line in [
        "sandbox = \"off\"",
        "sandbox-read = [\"/\"]",
        "sandbox-write = [\"/\"]",
        "sandbox-memory = \"off\"",
        "sandbox-processes = 5",
        "sandbox-open-files = \"off\"",
        "sandbox-file-size = \"1G\"",
        "sandbox-disk = \"off\"",
        "network = \"open\"",
        "network-hosts = [\"example.com\"]",
        "commands = true",
    ] {
        let refused = World::new().file("project/giga.toml", line).load(&[]).err().unwrap().to_string();
        assert!(refused.contains("a project's giga.toml may not set"), "{line}: {refused}");
        let own = World::new().file(".config/gigafactory/giga.toml", line).load(&[]).unwrap();
        assert!(sandbox(&own).is_ok(), "{line}");
    }
}

#[test]
fn toolchains_of_the_home_are_granted_unless_something_else_is_said() {
    let world = || World::new().file(".cargo/bin/cargo", "").file(".ssh/id", "");
    let read = |world: World| world.load(&[]).unwrap().sandbox_paths(Key::SandboxRead).value;
    let granted = read(world());
    assert!(granted.len() == 1 && granted[0].ends_with(".cargo/bin"), "{granted:?}");
    assert!(read(world().file(".config/gigafactory/giga.toml", "sandbox-read = []")).is_empty());
}

#[test]
fn what_a_sandbox_is_granted() {
    let world = World::new().file(
        ".config/gigafactory/giga.toml",
        "sandbox-read = [\"~/tools\", \"/opt/x\"]\nsandbox-processes = 7\nnetwork-hosts = [\"*.example.com\"]",
    );
    let settings = world.load(&[(Key::SandboxMemory, "2G"), (Key::SandboxDisk, "off")]).unwrap();
    let read = settings.sandbox_paths(Key::SandboxRead).value;
    assert!(read[0].ends_with("tools") && read[0].is_absolute(), "{read:?}");
    assert_eq!(read[1], Path::new("/opt/x"));
    let limits = settings.sandbox_limits().unwrap();
    assert_eq!((limits.memory_bytes, limits.processes, limits.disk_bytes), (Some(2 << 30), Some(7), None));
    assert_eq!(settings.network_hosts().unwrap().value[0].to_string(), "*.example.com");
    let wrong = |key, value| {
        let settings = world.load(&[(key, value)]).unwrap();
        let checked = settings.sandbox_mode().map(drop);
        let checked = checked.and_then(|()| settings.sandbox_limits().map(drop));
        checked.and_then(|()| settings.network_hosts().map(drop)).err().unwrap().to_string()
    };
    assert_eq!(wrong(Key::Sandbox, "maybe"), "flag --sandbox: `maybe` is none of auto, require, off");
    assert!(wrong(Key::SandboxMemory, "much").contains("neither a size such as 16GiB nor off"));
    assert!(wrong(Key::NetworkHosts, "https://x").contains("is not a host"));
}

#[test]
fn the_coordinator_on_this_machine_is_found() {
    let world = World::new()
        .file(".local/share/gigafactory/url", "http://127.0.0.1:4321\n")
        .file(".local/share/gigafactory/admin.token", &token(1));
    let settings = world.load(&[]).unwrap();
    assert_eq!(settings.url().value, "http://127.0.0.1:4321");
    let found = settings.token_for(&settings.url()).unwrap().unwrap();
    assert_eq!(found.secret.reveal(), token(1));
    assert_eq!(found.masked().chars().count(), 17);
    assert_eq!(World::new().load(&[]).unwrap().url().value, "http://127.0.0.1:7717");
}

#[test]
fn tokens_are_taken_in_order() {
    let world = World::new()
        .file(".local/share/gigafactory/admin.token", &token(1))
        .file(".config/gigafactory/giga.toml", "token-file = \"my.token\"")
        .file(".config/gigafactory/my.token", &token(2));
    let secret = |world: &World, flags: &[(Key, &str)]| {
        world.load(flags).unwrap().token().unwrap().unwrap().secret.reveal().to_owned()
    };
    assert_eq!(secret(&world, &[]), token(2), "relative to the file that names it");
    let world = world.set("GIGA_TOKEN", &token(3));
    assert_eq!(secret(&world, &[]), token(3));
    let path = world.folder.path().join("home/.local/share/gigafactory/admin.token");
    assert_eq!(secret(&world, &[(Key::TokenFile, path.to_str().unwrap())]), token(1));
}

#[test]
fn what_is_not_a_token_is_never_sent() {
    let world = World::new().file("secret", "root:x:0:0").set("GIGA_TOKEN_FILE", "");
    let path = world.folder.path().join("home/secret");
    let settings = world.load(&[(Key::TokenFile, path.to_str().unwrap())]).unwrap();
    assert!(settings.token().err().unwrap().to_string().contains("not a token"));
}

#[test]
fn settings_of_a_factory_come_from_everywhere() {
    let world = World::new()
        .file(
            ".config/gigafactory/giga.toml",
            "seats = 4\nrepos = \"code\"\ngit-allow = [\"https://a\", \"https://b\"]",
        )
        .set("GIGA_FACTORY", "mac-1");
    let settings = world.load(&[(Key::CheckpointEvery, "5s")]).unwrap();
    assert_eq!(settings.seats().unwrap().value, 4);
    assert_eq!(settings.git_allow().value, ["https://a", "https://b"]);
    assert!(
        settings.repos().unwrap().value.ends_with("home/.config/gigafactory/code"),
        "relative to the file"
    );
    let id = settings.factory_id().unwrap().value;
    assert_eq!(id.as_str(), "mac-1");
    assert!(settings.factory_base(&id).value.ends_with("gigafactory/factory/mac-1"));
    assert_eq!(settings.checkpoint_every().unwrap().value.as_secs(), 5);
    let wrong = |key, value| {
        let settings = world.load(&[(key, value)]).unwrap();
        [settings.seats().err(), settings.engine_idle().err(), settings.factory_id().err()]
            .into_iter()
            .flatten()
            .map(|error| error.to_string())
            .collect::<String>()
    };
    assert_eq!(wrong(Key::Seats, "many"), "flag --seats: `many` is not a number from 1 to 256");
    assert_eq!(wrong(Key::EngineIdle, "0s"), "flag --engine-idle: `0s` must be longer than zero");
    assert!(wrong(Key::Factory, "../x").starts_with("flag --id: "));
}

#[test]
fn who_we_are_at_service_bus_comes_from_a_file_or_from_the_environment() {
    const TEXT: &str = "Endpoint=sb://ns/;SharedAccessKeyName=root;SharedAccessKey=hunter2";
    let describe = |world: &World, flags: &[(Key, &str)]| {
        world.load(flags).unwrap().service_bus().map(|access| access.credential.describe())
    };
    assert_eq!(describe(&World::new(), &[]).unwrap(), "managed identity");
    let world = World::new().set("AZURE_SERVICEBUS_CONNECTION_STRING", TEXT);
    assert_eq!(describe(&world, &[]).unwrap(), "shared access key root");
    let missing = [(Key::ServiceBusConnectionFile, "/nowhere/connection")];
    let error = describe(&world, &missing).unwrap_err().to_string();
    assert!(error.contains("--servicebus-connection") && error.contains("/nowhere/connection"), "{error}");
    let broken = World::new().set("AZURE_SERVICEBUS_CONNECTION_STRING", "SharedAccessKey=hunter2");
    let error = describe(&broken, &[]).unwrap_err().to_string();
    assert!(error.contains("AZURE_SERVICEBUS_CONNECTION_STRING") && !error.contains("hunter2"), "{error}");
}

#[test]
fn a_factory_reads_only_a_broker_that_it_can_reach_by_itself() {
    let broker = |world: &World, flags: &[(Key, &str)]| world.load(flags).unwrap().factory_broker();
    let world = World::new();
    assert_eq!(broker(&world, &[]).unwrap(), None);
    let flag = [(Key::Broker, "nats://host:4222")];
    assert_eq!(broker(&world, &flag).unwrap().unwrap().value, "nats://host:4222");
    let azure = [(Key::Broker, "servicebus://contoso.servicebus.windows.net")];
    assert!(broker(&world, &azure).unwrap().is_some());
    let wrong = broker(&world, &[(Key::Broker, "postgres://ana:hunter2@db/giga")]).unwrap_err().to_string();
    assert!(wrong.contains("--broker") && wrong.contains("nats://") && !wrong.contains("hunter2"), "{wrong}");
    let of_coordinator = world.set("GIGA_BROKER", "postgres://db/giga");
    assert_eq!(broker(&of_coordinator, &[]).unwrap(), None, "it is the coordinator's");
}

#[test]
fn a_project_sets_only_what_a_stranger_may() {
    let written = |key: Key| match key {
        Key::Seats | Key::Factories => format!("{} = 2", key.name()),
        key if key.is_switch() => format!("{} = true", key.name()),
        key => format!("{} = \"x\"", key.name()),
    };
    let harmless = [Key::Product, Key::Output, Key::LogFormat];
    for key in Key::all() {
        let world = World::new().file("project/giga.toml", &written(key));
        if harmless.contains(&key) {
            assert!(world.load(&[]).is_ok(), "{}", key.name());
            continue;
        }
        let refused = world.load(&[]).err().unwrap().to_string();
        let own = world.folder.path().join("home/.config/gigafactory/giga.toml").display().to_string();
        for part in ["project/giga.toml: ", &format!("`{}`", key.name()), &own, key.flag(), key.variable()] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        // Whoever said it in this call has chosen.
        let settings = world.load(&[(key, "own")]).unwrap();
        assert_eq!(settings.get(key).unwrap().origin, Origin::Flag(key.flag()));
        assert!(World::new().file(".config/gigafactory/giga.toml", &written(key)).load(&[]).is_ok());
    }
    let engines = "[engines.claude]\nprogram = \"./evil\"";
    let refused = World::new().file("project/giga.toml", engines).load(&[]).err().unwrap().to_string();
    assert!(refused.contains("`[engines]`"), "{refused}");
    let own = World::new().file(".config/gigafactory/giga.toml", engines).load(&[]).unwrap();
    assert!(own.engines().value.programs[&Program::Claude].program.is_some());
}

#[test]
fn the_users_own_file_stays_so_in_its_own_folder() {
    let world = World::new().file("project/deep/data/giga.toml", "listen = \"127.0.0.1:1\"");
    let data = world.folder.path().join("home/project/deep/data");
    let mut settings = world.load(&[(Key::Data, data.to_str().unwrap())]).unwrap();
    assert_eq!(settings.listen().value, "127.0.0.1:1");
    settings.surroundings.working_folder = data;
    assert!(Settings::load(settings.flags, settings.surroundings).is_ok());
}

#[test]
fn the_local_token_goes_to_the_local_coordinator_only() {
    let world = World::new().file(".local/share/gigafactory/admin.token", &token(1));
    let sent = |world: &World, flags: &[(Key, &str)]| {
        let settings = world.load(flags).unwrap();
        settings.token_for(&settings.url())
    };
    assert!(matches!(sent(&world, &[]), Err(CliError::NotRunning { .. })), "another may have its port now");
    let elsewhere = [(Key::Url, "http://127.0.0.1:9")];
    assert!(matches!(sent(&world, &elsewhere), Err(CliError::NotItsToken { .. })));

    let world = world.file(".local/share/gigafactory/url", "http://127.0.0.1:4321\n");
    assert!(sent(&world, &[]).unwrap().is_some());
    assert!(sent(&world, &[(Key::Url, "http://127.0.0.1:4321/")]).unwrap().is_some());
    for url in ["http://127.0.0.1:9", "https://127.0.0.1:4321", "http://elsewhere:4321"] {
        assert!(matches!(sent(&world, &[(Key::Url, url)]), Err(CliError::NotItsToken { .. })), "{url}");
    }
    let world = world.set("GIGA_TOKEN", &token(2));
    assert!(sent(&world, &elsewhere).unwrap().is_some(), "the user chose so");
}
