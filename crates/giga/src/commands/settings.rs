//! `giga config show`: every setting, its value and where that comes from. Secrets are masked.

use serde_json::{Value, json};

use super::Done;
use super::context::Context;
use crate::config::{Key, Origin, mask_url};
use crate::output::{Columns, printable};

pub(crate) fn show(context: &Context) -> Done {
    let settings = &context.settings;
    let data = settings.data();
    let token = match settings.token() {
        Ok(Some(token)) => (token.masked(), token.origin.to_string()),
        Ok(None) => ("-".to_owned(), "none found".to_owned()),
        Err(error) => ("-".to_owned(), error.to_string()),
    };
    let plain = |set: crate::config::Setting<String>| (mask_url(&set.value), set.origin.to_string());
    let or_none =
        |key: Key| settings.get(key).map_or_else(|| ("-".to_owned(), Origin::Default.to_string()), plain);
    let rows = [
        (Key::Url.name(), plain(settings.url())),
        ("token", token),
        (Key::TokenFile.name(), or_none(Key::TokenFile)),
        (Key::Product.name(), or_none(Key::Product)),
        (Key::Output.name(), plain(settings.output())),
        (Key::Data.name(), (data.value.display().to_string(), data.origin.to_string())),
        (Key::Listen.name(), plain(settings.listen())),
        (Key::Store.name(), plain(settings.store())),
        (Key::Log.name(), plain(settings.log("warn"))),
        (Key::LogFormat.name(), plain(settings.log_format())),
    ];
    let list: Vec<Value> = rows
        .iter()
        .map(|(name, (value, origin))| json!({"name": name, "value": value, "origin": origin}))
        .collect();
    context.output.list(&json!({ "settings": list }), ("/settings", "/name"), "", || {
        let mut table = Columns::new(&["SETTING", "VALUE", "ORIGIN"]);
        for (name, (value, origin)) in &rows {
            table.row([(*name).to_owned(), printable(value), printable(origin)]);
        }
        table.render()
    })
}
