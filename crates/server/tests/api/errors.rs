//! A store that is not well: what strangers are told, and what they are not.

use crate::probe::Mood;
use crate::world::World;

#[tokio::test]
async fn internal_words_stay_inside() {
    let world = World::start().await;
    for (mood, status, code) in [
        (Mood::Unavailable, 503, "unavailable"),
        (Mood::Broken, 500, "internal"),
        (Mood::Panicking, 500, "internal"),
    ] {
        world.store.set(mood);
        for path in ["/api/fleet/jobs", "/api/fleet/flags"] {
            let reply = world.get(path).token(&world.admin).refused(status, code, "").await;
            assert!(!reply.text.contains("secret"), "{}", reply.text);
            assert_eq!(reply.header("retry-after"), if status == 503 { "1" } else { "" });
        }
    }
    world.store.set(Mood::Well);
    world.get("/api/fleet/jobs").token(&world.admin).gives(200).await;
}
