//! The compose file, by the schema of the compose specification, and what it promises: nothing of giga runs as root, and no
//! secret is in it.

use serde_json::{Value, json};

use crate::{judged, root};

fn compose() -> Value {
    let file = root().join("deploy/compose.yaml");
    judged(&["compose", file.to_str().unwrap()], "").unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_service_is_of_the_specification_and_refers_to_what_is_there() {
    let compose = compose();
    assert_eq!(names(&compose["services"]), ["postgres", "nats", "coordinator", "factory"]);
    for (name, service) in compose["services"].as_object().unwrap() {
        for secret in service["secrets"].as_array().into_iter().flatten() {
            assert!(compose["secrets"][secret.as_str().unwrap()]["file"].is_string(), "{name}: {secret}");
        }
        for network in service["networks"].as_array().unwrap() {
            assert!(compose["networks"][network.as_str().unwrap()].is_object(), "{name}: {network}");
        }
        for volume in service["volumes"].as_array().unwrap() {
            let volume = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(compose["volumes"][volume].is_object(), "{name}: {volume}");
        }
        for other in service["depends_on"].as_object().into_iter().flat_map(|others| others.keys()) {
            assert!(compose["services"][other].is_object(), "{name}: {other}");
        }
    }
}

#[test]
fn giga_is_confined_and_its_image_is_the_one_that_is_made_here() {
    let compose = compose();
    for name in ["coordinator", "factory"] {
        let service = &compose["services"][name];
        let image = format!("localhost/gigafactory-{name}:{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(service["image"], image.as_str());
        assert_eq!(service["user"], "10001:10001");
        assert_eq!(service["read_only"], true);
        assert_eq!(service["cap_drop"], json!(["ALL"]));
        assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]));
    }
    assert_eq!(compose["services"]["coordinator"]["ports"], json!(["127.0.0.1:7717:7717"]));
    assert_eq!(compose["networks"]["inside"]["internal"], true);
    let factory = &compose["services"]["factory"];
    assert_eq!(factory["networks"], json!(["outside"]), "a job reaches neither the database nor the broker");
}

#[test]
fn a_file_that_no_engine_would_take_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("compose.yaml");
    let text = std::fs::read_to_string(root().join("deploy/compose.yaml")).unwrap();
    assert!(text.contains("stop_grace_period: 10m"));
    std::fs::write(&file, text.replace("stop_grace_period: 10m", "stop_grace: 10m")).unwrap();
    let wrong = judged(&["compose", file.to_str().unwrap()], "").unwrap_err();
    assert!(wrong.contains("services/factory") && wrong.contains("stop_grace"), "{wrong}");
}
