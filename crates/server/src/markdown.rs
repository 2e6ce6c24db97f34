//! Markdown that somebody outside wrote, as HTML that may stand in our page.
//!
//! Two locks, either of which would do: the parser's events are judged one by one, so that only what is known here gets
//! out, and the HTML made from them goes through a whitelist with the parser of a browser. HTML in the text is shown as
//! text, never taken as HTML: an engine reads every word of a job, so nothing of it may be hidden from the reviewer in
//! a comment. For the same reason characters that turn or hide text are spelled out. The result loads nothing from
//! anywhere, carries nothing of the author's but words, links and the language of code, and takes time and room in
//! proportion to the text.

mod spelled;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::{Builder, Url, UrlRelative};
use giga_domain::limits;
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html,
};

use self::spelled::{spelled_out, spelled_out_piece};

/// Deeper than people read; what is nested deeper stands on this level.
const DEEPEST: usize = 24;
/// A page's own headings stand above those of a text.
const OUTER_HEADINGS: usize = 2;
/// Every text may have tables with so many cells, and one more for each of its bytes.
const CELLS: usize = 100_000;
/// The HTML writer looks ahead to the end of a text for each `&` in it, so that long ones are better cut. Where is only
/// seen by somebody who looks for it.
const LONGEST_TEXT: usize = 8 * 1024;
const CUT: &str = "<wbr>";
const LANGUAGE_CHARS: usize = 32;

const TAGS: [&str; 24] = [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
    "wbr",
];

pub(crate) fn render(text: &str) -> String {
    let text = spelled_out(text);
    let mut options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    options.set(Options::ENABLE_TABLES, most_cells(&text) <= text.len() + CELLS);
    let events = Judge::default().judge(Parser::new_ext(&text, options));
    let mut rendered = String::with_capacity(2 * text.len());
    html::push_html(&mut rendered, events);
    CLEANER.clean(&rendered).to_string()
}

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::empty();
    cleaner
        .tags(HashSet::from(TAGS))
        .add_tag_attributes("a", ["href"])
        .add_tag_attributes("code", ["class"])
        .add_tag_attributes("ol", ["start"])
        .attribute_filter(|tag, attribute, value| {
            let known = match (tag, attribute) {
                ("code", "class") => value.strip_prefix("language-").is_some_and(is_language),
                ("a", "href") => address(value).is_some(),
                ("ol", "start") => value.bytes().all(|byte| byte.is_ascii_digit()),
                ("a", "rel" | "target") => true,
                _ => false,
            };
            known.then_some(Cow::Borrowed(value))
        })
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank");
    cleaner
});

/// How many cells its tables can have at most. Short rows are filled up to the width of their table, so that a small
/// text could have millions; a table ends with an empty line at the latest.
fn most_cells(text: &str) -> usize {
    let (mut cells, mut widest) = (0_usize, 0);
    for line in text.split(['\n', '\r']) {
        widest = if line.trim().is_empty() { 0 } else { widest.max(line.matches('|').count() + 1) };
        cells = cells.saturating_add(if widest > 1 { widest } else { 0 });
    }
    cells
}

/// The address as a browser would take it, where that is one of the few kinds that we lead to.
fn address(written: &str) -> Option<String> {
    let begins_with =
        |scheme: &str| written.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if written.len() > limits::URL_CHARS || !["https://", "http://", "mailto:"].into_iter().any(begins_with) {
        return None;
    }
    Url::parse(written).ok().map(String::from)
}

fn is_language(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '#' | '.');
    (1..=LANGUAGE_CHARS).contains(&word.len()) && word.chars().all(fits)
}

/// What became of a tag, for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// Left out with its end; what it holds stays.
    Dropped,
    Kept(TagEnd),
}

#[derive(Debug, Default)]
struct Judge {
    opened: Vec<Opened>,
    /// How many of them were kept.
    depth: usize,
    in_link: bool,
    /// How many bytes of text came since the last tag.
    text_bytes: usize,
}

impl Judge {
    fn judge<'a>(mut self, events: impl Iterator<Item = Event<'a>>) -> impl Iterator<Item = Event<'a>> {
        events.flat_map(move |event| {
            let mut judged = Vec::with_capacity(2);
            self.one(event, &mut judged);
            judged
        })
    }

    fn one<'a>(&mut self, event: Event<'a>, judged: &mut Vec<Event<'a>>) {
        match event {
            Event::Start(tag) => self.start(tag, judged),
            Event::End(_) => judged.extend(self.end()),
            // Of extensions that are not switched on, beside what there is.
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(text, judged),
            Event::Code(text) if text.len() > LONGEST_TEXT => {
                self.text_bytes = 0;
                judged.push(ours("<code>"));
                self.text(text, judged);
                judged.push(ours("</code>"));
            }
            Event::TaskListMarker(done) => judged.push(words(if done { "☑ " } else { "☐ " })),
            event @ (Event::Code(_) | Event::SoftBreak | Event::HardBreak | Event::Rule) => {
                judged.push(event);
            }
        }
    }

    fn text<'a>(&mut self, text: CowStr<'a>, judged: &mut Vec<Event<'a>>) {
        // Once more: an entity such as `&#x202e;` is a character only now.
        let text = match spelled_out_piece(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(spelled) => CowStr::from(spelled),
        };
        if self.text_bytes + text.len() <= LONGEST_TEXT {
            self.text_bytes += text.len();
            return judged.push(Event::Text(text));
        }
        let mut rest = &*text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST_TEXT));
            judged.extend([ours(CUT), Event::Text(CowStr::from(piece.to_owned()))]);
            self.text_bytes = piece.len();
            rest = after;
        }
    }

    fn start<'a>(&mut self, tag: Tag<'a>, judged: &mut Vec<Event<'a>>) {
        let started = match tag {
            Tag::Link { link_type, dest_url, .. } => self.link(link_type, &dest_url),
            Tag::Image { dest_url, .. } => {
                judged.extend(self.link(LinkType::Inline, &dest_url));
                Some(words("Image: "))
            }
            Tag::Heading { level, .. } => {
                let outer = (level as usize + OUTER_HEADINGS).min(6);
                let level = HeadingLevel::try_from(outer).unwrap_or(HeadingLevel::H6);
                self.keep(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() }, 1)
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                let language = info.split([' ', '\t', ',']).next().unwrap_or_default();
                let kind = if is_language(language) {
                    CodeBlockKind::Fenced(CowStr::from(language.to_owned()))
                } else {
                    CodeBlockKind::Indented
                };
                self.keep(Tag::CodeBlock(kind), 1)
            }
            Tag::HtmlBlock => self.keep(Tag::CodeBlock(CodeBlockKind::Indented), 1),
            // Alignment would be an inline style, which the page's policy forbids.
            Tag::Table(columns) => self.keep(Tag::Table(vec![Alignment::None; columns.len()]), 4),
            Tag::BlockQuote(_) => self.keep(Tag::BlockQuote(None), 1),
            tag @ Tag::List(_) => self.keep(tag, 2),
            // Parts stay or go with the whole.
            tag @ (Tag::Item | Tag::TableHead | Tag::TableRow | Tag::TableCell) => {
                let whole = matches!(self.opened.last(), Some(Opened::Kept(_)));
                if whole { self.keep(tag, 1) } else { self.drop() }
            }
            tag @ (Tag::Paragraph
            | Tag::CodeBlock(CodeBlockKind::Indented)
            | Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough) => self.keep(tag, 1),
            // Of extensions that are not switched on.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.drop(),
        };
        judged.extend(started);
    }

    /// A link in a link is none, and neither is one that does not lead outside: there is nothing here to lead to.
    fn link<'a>(&mut self, link_type: LinkType, dest_url: &str) -> Option<Event<'a>> {
        let address = match link_type {
            LinkType::Email => address(&format!("mailto:{dest_url}")),
            _ => address(dest_url),
        };
        let Some(address) = address.filter(|_| !self.in_link) else { return self.drop() };
        let (title, id) = (CowStr::Borrowed(""), CowStr::Borrowed(""));
        let link = Tag::Link { link_type: LinkType::Inline, dest_url: CowStr::from(address), title, id };
        let kept = self.keep(link, 1);
        self.in_link = kept.is_some();
        kept
    }

    /// Keeps the tag if there is room for it and the parts that it needs.
    fn keep<'a>(&mut self, tag: Tag<'a>, room: usize) -> Option<Event<'a>> {
        if self.depth + room > DEEPEST {
            return self.drop();
        }
        self.depth += 1;
        self.text_bytes = 0;
        self.opened.push(Opened::Kept(tag.to_end()));
        Some(Event::Start(tag))
    }

    fn drop<'a>(&mut self) -> Option<Event<'a>> {
        self.opened.push(Opened::Dropped);
        None
    }

    fn end<'a>(&mut self) -> Option<Event<'a>> {
        match self.opened.pop()? {
            Opened::Dropped => None,
            Opened::Kept(end) => {
                self.depth -= 1;
                self.text_bytes = 0;
                self.in_link &= end != TagEnd::Link;
                Some(Event::End(end))
            }
        }
    }
}

fn words(text: &'static str) -> Event<'static> {
    Event::Text(CowStr::Borrowed(text))
}

/// HTML that stands in this file, never in a text.
fn ours(html: &'static str) -> Event<'static> {
    Event::InlineHtml(CowStr::Borrowed(html))
}

#[cfg(test)]
mod tests;
