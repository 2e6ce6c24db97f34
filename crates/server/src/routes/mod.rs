//! What a route is: where it is, who may call it, about what, and what goes in and out.
//!
//! The router, the guard and the OpenAPI document are all made from these entries. An entry cannot be written without
//! saying who may call it, and there is no other way to serve anything.

mod fix;
mod table;

use std::borrow::Cow;

use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter};
use giga_domain::token::Role;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

pub use crate::problem::Code;
pub(crate) use fix::call_of;
pub(crate) use table::mcp::OPERATION as MCP;
pub use table::table;
pub(crate) use table::{query, words};

use crate::app::App;

/// Whose token opens the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No token is asked for.
    Public,
    /// A person's or program's token with at least this role. Factories stay out.
    Role(Role),
    /// A factory with its own token. No role stands in for it: only the holder writes as the holder.
    Factory,
    /// A credential that factories of a pool enroll with.
    Pool,
    /// A token with at least this role, or a factory about its own affairs.
    RoleOrFactory(Role),
}

/// What the route is about, and so how a token's products bear on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Nothing that belongs to anyone.
    Nothing,
    /// One product, chosen by the manifest, the header or the token.
    Product,
    /// All products that the token covers, or the one that the header names.
    Products,
    /// The job in the path, or the one that the artifact in the path belongs to. Another product's job does not exist
    /// for the caller.
    Job,
    /// The factory in the path. One that serves none of the caller's products does not exist for the caller.
    Factory,
    /// What the calling factory itself holds or is.
    Own,
    /// Anything that is no wider than the token itself.
    Within,
    /// Everyone: only a token for every product will do.
    Fleet,
}

impl Scope {
    /// Does `x-product-id` choose among the caller's products here?
    pub const fn narrows(self) -> bool {
        matches!(self, Self::Product | Self::Products | Self::Job | Self::Factory)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Path,
    Query,
    Header,
}

#[derive(Debug, Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub place: Place,
    pub about: &'static str,
    pub takes: Takes,
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    Text,
    /// One of the words of an enum.
    Word(SchemaOf),
    /// Several of them, separated by commas.
    Words(SchemaOf),
}

/// What goes in.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    None,
    /// A Markdown manifest, or the same as JSON.
    Manifest,
    /// The same for a profile.
    Profile,
    Json(SchemaOf),
    /// An empty body means the defaults.
    OptionalJson(SchemaOf),
    Bytes,
}

/// What comes out, where all goes well.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    Nothing,
    Json(SchemaOf),
    /// Server-sent events, each with this as its data.
    Events(SchemaOf),
    Text,
    Bytes,
}

#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub content: Content,
    /// It carries an entity tag.
    pub tagged: bool,
}

/// A wire type, as the document wants it.
#[derive(Debug, Clone, Copy)]
pub struct SchemaOf {
    pub name: fn() -> Cow<'static, str>,
    pub schema: fn() -> RefOr<Schema>,
    pub parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

pub(crate) fn schema_of<T: ToSchema>() -> SchemaOf {
    SchemaOf { name: T::name, schema: T::schema, parts: T::schemas }
}

type Handler = fn(MethodFilter) -> MethodRouter<App>;

/// One entry of the table.
#[derive(Debug)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The operation's name in the document.
    pub operation: &'static str,
    pub access: Access,
    /// What runs inside a job may call it too, with its token and about that job alone.
    pub from_inside: bool,
    pub scope: Scope,
    /// Others write its query, who may put more into it than anybody here has use for.
    pub ignores_unknown_params: bool,
    pub about: &'static str,
    pub body: Body,
    pub params: Vec<Param>,
    pub answers: Vec<Answer>,
    /// What it can refuse beyond what follows from the rest of the entry.
    pub refusals: Vec<Code>,
    pub(crate) handler: Handler,
}

impl Route {
    fn new(
        method: Method,
        path: &'static str,
        operation: &'static str,
        access: Access,
        scope: Scope,
        handler: Handler,
    ) -> Self {
        Self {
            method,
            path,
            operation,
            access,
            from_inside: false,
            scope,
            ignores_unknown_params: false,
            about: "",
            body: Body::None,
            params: Vec::new(),
            answers: Vec::new(),
            refusals: Vec::new(),
            handler,
        }
    }

    fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    fn also_from_inside(mut self) -> Self {
        self.from_inside = true;
        self
    }

    fn ignores_unknown_params(mut self) -> Self {
        self.ignores_unknown_params = true;
        self
    }

    fn takes<T: ToSchema>(mut self) -> Self {
        self.body = Body::Json(schema_of::<T>());
        self
    }

    fn may_take<T: ToSchema>(mut self) -> Self {
        self.body = Body::OptionalJson(schema_of::<T>());
        self
    }

    fn takes_bytes(mut self) -> Self {
        self.body = Body::Bytes;
        self
    }

    fn takes_manifest(mut self) -> Self {
        self.body = Body::Manifest;
        self
    }

    fn takes_profile(mut self) -> Self {
        self.body = Body::Profile;
        self
    }

    fn params(mut self, params: &[Param]) -> Self {
        self.params.extend_from_slice(params);
        self
    }

    fn gives<T: ToSchema>(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, Content::Json(schema_of::<T>()))
    }

    fn answer(mut self, status: u16, about: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status, about, content, tagged: false });
        self
    }

    /// The answers so far carry an entity tag.
    fn tagged(mut self) -> Self {
        for answer in &mut self.answers {
            answer.tagged = true;
        }
        self
    }

    fn refuses(mut self, codes: &[Code]) -> Self {
        self.refusals.extend_from_slice(codes);
        self
    }

    pub fn query_names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.params.iter().filter(|p| p.place == Place::Query).map(|p| p.name)
    }

    /// The names between braces.
    pub fn path_names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Everything that it can refuse.
    pub fn all_refusals(&self) -> Vec<Code> {
        let mut codes = self.refusals.clone();
        if self.access != Access::Public {
            codes.extend([
                Code::InvalidRequest,
                Code::Unauthenticated,
                Code::Forbidden,
                Code::TooManyRequests,
            ]);
            codes.extend([Code::Internal, Code::Unavailable]);
        }
        if matches!(self.scope, Scope::Job | Scope::Factory) {
            codes.push(Code::NotFound);
        }
        match self.body {
            Body::None => {}
            Body::Bytes => codes.extend([Code::PayloadTooLarge, Code::RequestTimeout]),
            Body::Json(_) | Body::OptionalJson(_) => {
                codes.extend([Code::PayloadTooLarge, Code::UnsupportedMediaType, Code::RequestTimeout]);
            }
            Body::Manifest | Body::Profile => {
                codes.extend([Code::PayloadTooLarge, Code::UnsupportedMediaType, Code::RequestTimeout]);
                codes.push(Code::InvalidManifest);
            }
        }
        if self.params.iter().any(|p| p.name == "if-match") {
            codes.push(Code::RevMismatch);
        }
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}
