//! Writes `page.rs`: what the library carries, as bytes that are part of the program.
//!
//! A file that was compressed is carried compressed, twice (gzip and Brotli), and not as it is: whoever accepts neither
//! is a program and not a browser, and waits for the few milliseconds that unpacking takes.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crate::inputs::collect;

pub(crate) fn without_page(out: &Path) -> Result<(), String> {
    write(out, "static PAGE: Option<Page> = None;\n")
}

pub(crate) fn with_page(out: &Path, dist: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    collect(dist, &mut files)?;
    files.sort();
    let mut text = format!(
        "static PAGE: Option<Page> = Some(Page {{\n    index: include_str!({}),\n    assets: &[\n",
        literal(&dist.join("index.html"))?
    );
    for file in &files {
        let name = file.strip_prefix(dist).unwrap_or(file).to_str().ok_or("a file name is not UTF-8")?;
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        // Vite's own notes are in a folder with a dot.
        let is_ours = name != "index.html" && !name.starts_with('.');
        if is_ours && !["gz", "br", "map"].contains(&ending) {
            asset(&mut text, file, name, media_type(name, ending)?)?;
        }
    }
    text.push_str("    ],\n});\n");
    write(out, &text)
}

fn asset(text: &mut String, file: &Path, name: &str, content_type: &str) -> Result<(), String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let packed = |ending: &str| {
        let path = PathBuf::from(format!("{}.{ending}", file.display()));
        path.exists().then_some(path)
    };
    let body = match (packed("gz"), packed("br")) {
        (Some(gzip), Some(brotli)) => format!(
            "Body::Packed {{ gzip: include_bytes!({}), brotli: include_bytes!({}) }}",
            literal(&gzip)?,
            literal(&brotli)?
        ),
        _ => format!("Body::Plain(include_bytes!({}))", literal(file)?),
    };
    writeln!(
        text,
        "        Asset {{ path: {:?}, content_type: {content_type:?}, hashed: {}, fingerprint: \"{:016x}\", body: {body} }},",
        format!("/{name}"),
        // Vite gives every file in there a name that goes by its content.
        name.starts_with("assets/"),
        hasher.finish(),
    )
    .map_err(|error| error.to_string())
}

/// The path, quoted as Rust reads it.
fn literal(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("{text:?}"))
}

fn media_type(name: &str, ending: &str) -> Result<&'static str, String> {
    Ok(match ending {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => return Err(format!("{name}: its media type is not known; add it to crates/web/build/table.rs")),
    })
}

fn write(out: &Path, text: &str) -> Result<(), String> {
    let path = out.join("page.rs");
    // The same again is no news to the compiler.
    if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    std::fs::write(&path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}
