//! Manifests that mean harm: the canary never runs, and the agent goes on.

use giga_api::client::Idempotency;

use super::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn no_field_of_a_manifest_is_ever_run() {
    let world = World::start().await;
    world.origin("hello");
    let mut config = world.config("a");
    config.can_clone = true;
    let factory = super::world::Factory::start(config);
    let canary = world.path().join("canary");
    let touch = format!("touch {}", canary.display());
    let file_url = format!("file://{}", world.path().join("repos/hello.git").display());
    let repos = [
        "../x".to_owned(),
        "hello/../../x".to_owned(),
        format!("ext::sh -c {touch}"),
        format!("ext::sh%20-c%20{}", canary.display()),
        format!("--upload-pack={touch}"),
        "-hello".to_owned(),
        format!("git@host:$({touch})"),
        format!("ssh://-oProxyCommand={}/x", touch.replace(' ', "${IFS}")),
        format!("file:///..{}", world.path().display()),
        format!("{file_url}/../hello.git"),
        "hello\\n".to_owned(),
    ];
    let mut taken = Vec::new();
    for (number, repo) in repos.iter().enumerate() {
        let manifest =
            format!("---\nname: bad-{number}\nengine: shell\nscript: \"true\"\nrepo: \"{repo}\"\n---\n");
        // Refused at once is best; what is taken must come to nothing.
        if let Ok(answer) = world.client.submit(manifest.into_bytes(), &Idempotency::Nothing).await {
            taken.push(answer.value.job.id);
        }
    }
    // Names and bodies are only ever text.
    let name = format!("$({touch}); `{touch}`");
    let manifest = format!(
        "---\nname: '{name}'\nengine: shell\nrepo: hello\nship: auto\nscript: echo x > x.txt\n---\n$({touch})\n"
    );
    let answer = world.client.submit(manifest.into_bytes(), &Idempotency::Nothing).await.unwrap();
    world.until_merged(&answer.job.id).await;
    for job in &taken {
        let job = world.job(job).await;
        assert!(matches!(job.stage.as_str(), "queued" | "failed" | "dead_letter"), "{job:#?}");
    }
    factory.drain().await;
    assert!(!canary.exists());
}

/// An engine plants links, hooks and settings; nothing outside its folder changes and no hook runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_engine_plants_does_not_reach_the_factory() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let canary = world.path().join("canary");
    let target = world.path().join("precious");
    std::fs::write(&target, "precious").unwrap();
    let script = format!(
        "mkdir -p .git/hooks\n\
         for hook in pre-commit post-commit pre-push post-checkout reference-transaction; do\n\
         printf '#!/bin/sh\\ntouch {canary}\\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook; done\n\
         git config core.fsmonitor 'touch {canary}'; git config core.sshCommand 'touch {canary}'\n\
         git config filter.x.clean 'touch {canary}; cat'; echo '* filter=x' > .gitattributes\n\
         ln -s {target} link; echo y > y.txt; ln -s / root",
        canary = canary.display(),
        target = target.display()
    );
    let job = world.submit("planter", "repo: hello\nship: auto", &script).await;
    world.until_merged(&job).await;
    factory.drain().await;
    assert!(!canary.exists(), "something planted was run");
    assert_eq!(std::fs::read_to_string(target).unwrap(), "precious");
    assert_eq!(origin.file("main", "y.txt"), "y");
}
