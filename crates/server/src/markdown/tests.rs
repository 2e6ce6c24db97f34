//! What hostile authors try, and that the output is what a browser takes for the few tags that we know.

mod corpus;

use std::cell::RefCell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use giga_domain::limits;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use proptest::prelude::*;

use self::corpus::HOSTILE;
use super::spelled::is_hidden;
use super::{CLEANER, DEEPEST, TAGS, render, spelled_out};

/// Every tag and comment in it, as the tokenizer of a browser finds them. Without a tree behind it nothing is raw text
/// to it, so it finds more tags than a browser would, never fewer.
#[derive(Default)]
struct Found {
    tags: RefCell<Vec<Tag>>,
    strange: RefCell<Vec<String>>,
}

impl TokenSink for Found {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => self.tags.borrow_mut().push(tag),
            Token::CommentToken(text) => self.strange.borrow_mut().push(format!("<!--{text}-->")),
            Token::DoctypeToken(_) => self.strange.borrow_mut().push("a doctype".to_owned()),
            // Code points that are no characters show nothing and do nothing.
            Token::ParseError(error) if error.starts_with("Bad character") => {}
            Token::ParseError(error) => self.strange.borrow_mut().push(error.into_owned()),
            Token::CharacterTokens(_) | Token::NullCharacterToken | Token::EOFToken => {}
        }
        TokenSinkResult::Continue
    }
}

fn tags_of(html: &str) -> Vec<Tag> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let tokenizer =
        Tokenizer::new(Found::default(), TokenizerOpts { exact_errors: true, ..Default::default() });
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    assert_eq!(tokenizer.sink.strange.borrow().as_slice(), [] as [String; 0], "in {html}");
    tokenizer.sink.tags.take()
}

/// Only what is on the list, with only what it may have.
fn assert_harmless(source: &str, html: &str) {
    for tag in tags_of(html) {
        let name: &str = &tag.name;
        assert!(TAGS.contains(&name), "<{name}> came out of {source:?}: {html}");
        for attribute in &tag.attrs {
            let (key, value): (&str, &str) = (&attribute.name.local, &attribute.value);
            let harmless = match (name, key) {
                ("a", "href") => {
                    let small = value.to_ascii_lowercase();
                    let outside =
                        ["http://", "https://", "mailto:"].iter().any(|begin| small.starts_with(begin));
                    outside && !value.chars().any(char::is_control)
                }
                ("a", "rel") => value == "noopener noreferrer nofollow",
                ("a", "target") => value == "_blank",
                ("code", "class") => value.chars().all(|c| c.is_ascii_alphanumeric() || "-_+#.".contains(c)),
                ("ol", "start") => value.parse::<u64>().is_ok(),
                _ => false,
            };
            assert!(harmless, "{name} {key}={value:?} came out of {source:?}: {html}");
        }
        if name == "a" && tag.kind == html5ever::tokenizer::TagKind::StartTag {
            assert_eq!(tag.attrs.len(), 3, "a link has href, rel and target: {html}");
        }
    }
    assert_eq!(CLEANER.clean(html).to_string(), html, "cleaning it once more changes nothing");
}

fn check(source: &str, expected: &str) {
    let html = render(source);
    assert_harmless(source, &html);
    assert_eq!(html.trim_end(), expected, "{source:?}");
}

const OUT: &str = r#"target="_blank" rel="noopener noreferrer nofollow""#;

#[test]
fn what_people_write() {
    check(
        "**bold**, *soft*, ~~gone~~, `code`",
        "<p><strong>bold</strong>, <em>soft</em>, <del>gone</del>, <code>code</code></p>",
    );
    check("# One\n\n###### Six", "<h3>One</h3>\n<h6>Six</h6>");
    check("- [ ] open\n- [x] done", "<ul>\n<li>☐ open</li>\n<li>☑ done</li>\n</ul>");
    check("3. three\n4. four", "<ol start=\"3\">\n<li>three</li>\n<li>four</li>\n</ol>");
    check("> quoted\n\n---", "<blockquote>\n<p>quoted</p>\n</blockquote>\n<hr>");
    check("one  \ntwo\nthree", "<p>one<br>\ntwo\nthree</p>");
    check(
        "| a | b |\n|:-:|--:|\n| 1 | 2 |",
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody></table>",
    );
    check(
        "a | b\n--|--\n1",
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td></td></tr>\n</tbody></table>",
    );
    check("```rust\nfn a() {}\n```", "<pre><code class=\"language-rust\">fn a() {}\n</code></pre>");
    check("```c++,ignore\n&\n```", "<pre><code class=\"language-c++\">&amp;\n</code></pre>");
    check("    plain <b>\n", "<pre><code>plain &lt;b&gt;\n</code></pre>");
    check(
        "[docs](https://example.com/a?b=1&c=2 \"a title\")",
        &format!(r#"<p><a href="https://example.com/a?b=1&amp;c=2" {OUT}>docs</a></p>"#),
    );
    check(
        "<https://example.com>",
        &format!(r#"<p><a href="https://example.com/" {OUT}>https://example.com</a></p>"#),
    );
    check(
        "<ana@example.com>",
        &format!(r#"<p><a href="mailto:ana@example.com" {OUT}>ana@example.com</a></p>"#),
    );
    check(
        "[mail](MAILTO:ana@example.com)",
        &format!(r#"<p><a href="mailto:ana@example.com" {OUT}>mail</a></p>"#),
    );
    // What does not lead anywhere is no link; a name in another script is shown as it is and asked for as it is sent.
    check("<http://> [a](https://[)", "<p>http:// a</p>");
    check(
        "[a](https://bücher.example/ü?q=ü)",
        &format!(r#"<p><a href="https://xn--bcher-kva.example/%C3%BC?q=%C3%BC" {OUT}>a</a></p>"#),
    );
    check("", "");
}

#[test]
fn images_are_links_and_nothing_is_loaded() {
    check(
        "![a cat](https://example.com/cat.png)",
        &format!(r#"<p><a href="https://example.com/cat.png" {OUT}>Image: a cat</a></p>"#),
    );
    check("![a cat](cat.png)", "<p>Image: a cat</p>");
    check("![x](data:image/svg+xml;base64,PHN2Zy8+)", "<p>Image: x</p>");
    // A link in a link is none.
    check(
        "[![badge](https://example.com/b.svg)](https://example.com/ci)",
        &format!(r#"<p><a href="https://example.com/ci" {OUT}>Image: badge</a></p>"#),
    );
    check(
        "![see [this](https://b.example)](https://a.example) and [that](https://c.example)",
        &format!(
            r#"<p><a href="https://a.example/" {OUT}>Image: see this</a> and <a href="https://c.example/" {OUT}>that</a></p>"#
        ),
    );
}

#[test]
fn html_is_shown_and_not_taken_for_html() {
    check("a <b>b</b> c", "<p>a &lt;b&gt;b&lt;/b&gt; c</p>");
    check("<!-- ignore the reviewer -->", "<pre><code>&lt;!-- ignore the reviewer --&gt;</code></pre>");
    check("see <!-- hidden --> this", "<p>see &lt;!-- hidden --&gt; this</p>");
    check("<div>\n*a*\n</div>", "<pre><code>&lt;div&gt;\n*a*\n&lt;/div&gt;</code></pre>");
}

#[test]
fn what_turns_or_hides_text_is_spelled_out() {
    check("a\u{202e}b", "<p>a⟨U+202E⟩b</p>");
    check("`x\u{2066}y`", "<p><code>x⟨U+2066⟩y</code></p>");
    check("a\u{0}b\u{1b}[31mc\u{9b}d", "<p>a⟨U+0000⟩b⟨U+001B⟩[31mc⟨U+009B⟩d</p>");
    check("hi\u{e0041}\u{e0042}", "<p>hi⟨U+E0041⟩⟨U+E0042⟩</p>");
    check("שלום and emoji 👩‍💻 stay", "<p>שלום and emoji 👩‍💻 stay</p>");
    // Nor does an entity get by.
    check("a&#x202e;b&shy;&ZeroWidthSpace;", "<p>a⟨U+202E⟩b⟨U+00AD⟩⟨U+200B⟩</p>");
    check("```\n// harmless\rsteal()\n```", "<pre><code>// harmless⟨U+000D⟩steal()\n</code></pre>");
    check("a\r\n\r\nb\r", "<p>a</p>\n<p>b</p>");
    let html = render("[a](https://example.com/\u{202e}gpj.exe)");
    assert!(html.contains("%E2%9F%A8U+202E%E2%9F%A9"), "{html}");
}

#[derive(serde::Deserialize)]
struct Visible {
    hidden: Vec<(String, String)>,
    texts: Vec<(String, String)>,
}

/// The page reads the same table for what it shows as plain text.
#[test]
fn they_are_the_same_ones_as_in_the_page() {
    let table: Visible = serde_json::from_str(include_str!("tests/visible.json")).expect("a table");
    let number = |hex: &str| u32::from_str_radix(hex, 16).expect("a code point");
    let ranges: Vec<_> = table.hidden.iter().map(|(from, to)| number(from)..=number(to)).collect();
    for c in '\0'..=char::MAX {
        let listed = ranges.iter().any(|range| range.contains(&u32::from(c)));
        assert_eq!(is_hidden(c), listed, "U+{:04X}", u32::from(c));
    }
    assert!(table.texts.len() > 5);
    for (text, shown) in table.texts {
        assert_eq!(spelled_out(&text), shown);
    }
}

#[test]
fn hostile_texts_come_out_harmless() {
    for source in HOSTILE {
        for text in [
            source.to_owned(),
            format!("> - {source}\n"),
            format!("| a |\n|---|\n| {source} |\n"),
            format!("**{source}** [{source}](https://example.com)"),
            format!("`` {source}"),
            format!("# {source}\n{source}"),
        ] {
            assert_harmless(&text, &render(&text));
        }
    }
}

#[test]
fn links_that_lead_nowhere_good_are_no_links() {
    for source in HOSTILE.iter().filter(|source| source.starts_with("[x](") || source.starts_with("![x](")) {
        let html = render(source);
        let kept = source.contains("https://example.com")
            && !source.contains("javascript:")
            && !source.contains(":https");
        assert_eq!(html.contains("<a "), kept, "{source:?}: {html}");
    }
}

/// How long this thread has been at work. Others on the machine do not count, where the system tells them apart.
fn worked() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

/// In proportion to the text: what is squared would take minutes, or gigabytes.
fn assert_quick(text: &str) {
    let before = worked();
    let html = render(text);
    let took = worked().saturating_sub(before);
    let start: String = text.chars().take(20).collect();
    assert!(took < Duration::from_secs(5), "{start:?} took {took:?}");
    let (made, of) = (html.len(), text.len());
    assert!(made < 40 * of + 1_000, "{start:?} made {made} bytes of {of}");
}

/// Texts that made one parser or another take minutes, or the whole stack.
#[test]
fn no_text_takes_long_or_much_room() {
    const LONG: usize = 256 * 1024;
    let all = |part: &str| part.repeat(LONG / part.len());
    let half = |part: &str| part.repeat(LONG / 2 / part.len());
    let grown = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for line in (0..).map(line) {
            if text.len() + line.len() > LONG {
                break;
            }
            text.push_str(&line);
        }
        text
    };
    let repeated = [
        ">",
        "> ",
        "- ",
        "1. ",
        "[",
        "![",
        "[a](",
        "[a][",
        "[]((",
        "*a **a ",
        "*a_ ",
        "_*",
        "~~a~ ",
        "<",
        "<a ",
        "<a href='",
        "<!--",
        "<!--a",
        "<?",
        "<![CDATA[",
        "\\",
        "a\n===\n",
        "\n\n",
        "```\n",
        "\u{202e}",
        "\"'<>&",
        "[x] ",
        "- [x] a\n",
    ];
    for text in repeated {
        assert_quick(&all(text));
    }
    for text in [
        half(">") + "\n" + &half("a\n"),
        half("> ") + "a\n" + &half("\n>"),
        grown(&|depth| format!("{}- a\n", "  ".repeat(depth))),
        grown(&|depth| format!("{}\n", "> ".repeat(depth))),
        half("[") + &half("](x)"),
        half("[") + &half("]"),
        half("*") + "a" + &half("*"),
        half("a*") + &half("*a"),
        grown(&|length| "`".repeat(length) + " "),
        "    ".to_owned() + &half("&#\n    "),
        "[a](https://example.com/".to_owned() + &half("&") + ")",
        // Many references to one long address.
        "[a]: https://example.com/".to_owned() + &half("x") + "\n\n" + &half("[a] "),
        grown(&|n| format!("[a{n}]: https://example.com/{n}\n")),
        grown(&|n| format!("[a{n}]: https://example.com/{n} '")),
    ] {
        assert_quick(&text);
    }
}

/// Those that took too long once, as long as they can be.
#[test]
fn nor_do_the_worst() {
    const MOST: usize = limits::MANIFEST_BYTES;
    let all = |part: &str| part.repeat(MOST / part.len());
    let table = |columns: usize| {
        let head = format!("{}|\n{}|\n", "|a".repeat(columns), "|-".repeat(columns));
        let rows = "|b|\n".repeat((MOST - head.len()) / 4);
        head + &rows
    };
    // Each is filled up to a quarter of a million cells.
    let head = format!("{}|\n{}|\n", "|a".repeat(500), "|-".repeat(500));
    let tables = all(&(head + &"|b\n".repeat(520) + "\n"));
    let head = format!("> {}|\n> {}|\n", "|a".repeat(300), "|-".repeat(300));
    let quoted = all(&(head + &"> b\n".repeat(500) + ">\n"));
    let code = format!("`{}`", all("&"));
    for text in [tables, quoted, table(100), table(100_000), all("&"), all("&#"), all("§"), code] {
        assert_quick(&text);
    }
}

/// A wide and long one is fine, and one that is only wide because it was made to be is shown as it was written.
#[test]
fn tables_have_as_many_cells_as_their_text_can_have() {
    let row = |cell: &str| cell.repeat(50) + "|\n";
    let honest = row("|a") + &row("|-") + &row("|b").repeat(2_000);
    assert_eq!(render(&honest).matches("<td>").count(), 100_000);
    let blown_up = "|a".repeat(1_000) + "|\n" + &"|-".repeat(1_000) + "|\n" + &"|b\n".repeat(200);
    let html = render(&blown_up);
    assert!(!html.contains("<td>") && html.contains("|b\n|b"), "{html}");
}

#[test]
fn what_is_nested_too_deep_stands_on_the_last_level() {
    let html = render(&format!("{} deep\n\n- a\n", "> ".repeat(1_000)));
    assert_harmless("", &html);
    assert_eq!(html.matches("<blockquote>").count(), DEEPEST);
    assert!(html.contains("deep"), "the words stay");
    let items: Vec<String> = (0..100).map(|depth| format!("{}- a{depth}", "  ".repeat(depth))).collect();
    let html = render(&items.join("\n"));
    assert_harmless("", &html);
    assert_eq!(html.matches("<ul>").count(), html.matches("</ul>").count());
    assert!(html.contains("a99"));
    let table = format!("{}| a |\n{0}|---|\n{0}| b |\n", "> ".repeat(30));
    let html = render(&table);
    assert_harmless("", &html);
    assert!(!html.contains("<t") && html.contains('a') && html.contains('b'), "{html}");
}

/// Pieces that mean something to Markdown or to HTML, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(HOSTILE.as_slice()).prop_map(str::to_owned),
        6 => prop::sample::select(vec![
            "*", "**", "_", "~~", "`", "```", "\n", "\n\n", "> ", "- ", "1. ", "# ", "|", "|-|\n", "[", "]", "(", ")",
            "![", "<", ">", "</", "&", "&#", ";", "\"", "'", "=", "\\", "    ", "\t", ":", "http://", "https://",
            "javascript:", "mailto:", "[ ] ", "[x] ", "<!--", "-->", "]]>", "<script>", "</script>", "<svg>", "<math>",
            "<style>", "<a href=", "on", "\u{0}", "\u{1}", "\u{202e}", "\u{2028}", "é", "𝕏",
        ]).prop_map(str::to_owned),
        2 => ".{0,12}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn whatever_comes_in_only_known_tags_come_out(source in pieces()) {
        assert_harmless(&source, &render(&source));
    }

    #[test]
    fn nor_do_they_out_of_noise(source in any::<String>()) {
        assert_harmless(&source, &render(&source));
    }
}
