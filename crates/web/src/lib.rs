//! The page in `web/`, carried inside the binary where it could be built (`build/`).
//!
//! This crate knows what there is, not how it is served: no HTTP, no paths on a disk. What is asked for is looked up in a
//! table that was made at build time, so that no name can lead anywhere else.

use std::borrow::Cow;
use std::fmt;
use std::io::Read as _;

/// Stands in the page where the server puts the nonce of each answer.
pub const NONCE_PLACEHOLDER: &str = "__CSP_NONCE__";

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The page of this binary; none where it was built without.
pub fn page() -> Option<&'static Page> {
    PAGE.as_ref()
}

/// A built page: one document for every address in it, and what that document loads.
#[derive(Debug)]
pub struct Page {
    /// With [`NONCE_PLACEHOLDER`] in it.
    pub index: &'static str,
    pub assets: &'static [Asset],
}

impl Page {
    /// By the path in the address, such as `/assets/index-4f2a.js`; nothing is decoded or normalised.
    pub fn asset(&self, path: &str) -> Option<&'static Asset> {
        self.assets.iter().find(|asset| asset.path == path)
    }
}

pub struct Asset {
    pub path: &'static str,
    pub content_type: &'static str,
    /// Its name changes with its content, so that whoever has it has it for ever.
    pub hashed: bool,
    /// Of the content, as it is when unpacked.
    pub fingerprint: &'static str,
    pub body: Body,
}

#[derive(Clone, Copy)]
pub enum Body {
    /// Too small or too dense to be worth packing.
    Plain(&'static [u8]),
    Packed {
        gzip: &'static [u8],
        brotli: &'static [u8],
    },
}

impl Body {
    /// As it is, unpacked where it has to be.
    pub fn plain(self) -> Cow<'static, [u8]> {
        match self {
            Self::Plain(bytes) => Cow::Borrowed(bytes),
            Self::Packed { gzip, .. } => {
                let mut bytes = Vec::new();
                flate2::read::GzDecoder::new(gzip)
                    .read_to_end(&mut bytes)
                    .expect("the build packed it, and it is part of this program");
                Cow::Owned(bytes)
            }
        }
    }
}

/// Without the bytes.
impl fmt::Debug for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asset").field("path", &self.path).field("body", &self.body).finish_non_exhaustive()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Packed { gzip, brotli } => {
                write!(f, "{} bytes of gzip, {} of Brotli", gzip.len(), brotli.len())
            }
        }
    }
}
