//! The OpenAPI document, made from the route table and the wire types. Nothing in it is written twice.

use std::collections::BTreeMap;

use axum::http::Method;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, ParameterStyle, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ArrayBuilder, Components, ContentBuilder, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi,
    OpenApiBuilder, PathsBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema, Type,
};

use crate::problem;
use crate::routes::{self, Access, Body, Code, Content, Place, Route, SchemaOf, Scope, Takes, schema_of};

const BEARER: &str = "token";
const ABOUT: &str = "Jobs, factories, events and the state of the fleet. JSON is camelCase, times are RFC 3339. \
Errors are application/problem+json with a stable `code`. Unknown fields and parameters are refused.";

/// OpenAPI 3.1 of everything that the server answers to.
pub fn openapi() -> OpenApi {
    let mut schemas = BTreeMap::new();
    let mut paths = PathsBuilder::new();
    let mut items: Vec<(&str, PathItem)> = Vec::new();
    let refusals = refusals(&mut schemas);
    for route in routes::table() {
        let item = PathItem::new(http_method(&route.method), operation(route, &mut schemas));
        match items.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, known)) => known.merge_operations(item),
            None => items.push((route.path, item)),
        }
    }
    for (path, item) in items {
        paths = paths.path(path, item);
    }
    // The keys of a map are words too, which the schema of a map does not name.
    collect(schema_of::<giga_api::wire::ScoreTerm>(), &mut schemas);
    let mut components = Components::new();
    components.schemas.extend(schemas);
    components.responses.extend(refusals.into_iter().map(|(name, response)| (name, response.into())));
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("giga_<kind>_<secret>")
        .description(Some("Issued by POST /api/fleet/tokens, or by enrolling a factory"))
        .build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    let info = InfoBuilder::new()
        .title("Gigafactory")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .build();
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).build()
}

fn operation(route: &Route, schemas: &mut Schemas) -> OperationBuilder {
    let mut operation = OperationBuilder::new()
        .operation_id(Some(route.operation))
        .summary(Some(route.about))
        .description(Some(who(route)));
    operation = operation.tag(tag(route.path));
    if route.access != Access::Public {
        operation = operation.security(SecurityRequirement::new::<_, _, &str>(BEARER, []));
    }
    for name in route.path_names() {
        let known = route.params.iter().find(|param| param.place == Place::Path && param.name == name);
        let takes = known.map_or(Takes::Text, |param| param.takes);
        let parameter = parameter(name, ParameterIn::Path, "").required(Required::True);
        operation = operation.parameter(taking(parameter, takes, schemas));
    }
    if route.scope.narrows() {
        let about = "Only this product; needed where the token has several and one must be chosen";
        operation = operation.parameter(parameter("x-product-id", ParameterIn::Header, about));
    }
    for param in &route.params {
        let place = match param.place {
            Place::Path => continue,
            Place::Query => ParameterIn::Query,
            Place::Header => ParameterIn::Header,
        };
        let parameter = parameter(param.name, place, param.about);
        operation = operation.parameter(taking(parameter, param.takes, schemas));
    }
    operation = operation.request_body(request_body(route.body, schemas));
    for answer in &route.answers {
        let mut response = ResponseBuilder::new().description(answer.about);
        match answer.content {
            Content::Nothing => {}
            Content::Json(schema) => response = response.content("application/json", json(schema, schemas)),
            Content::Events(schema) => {
                response = response.content("text/event-stream", json(schema, schemas));
            }
            Content::Bytes => response = response.content("application/octet-stream", plain()),
            Content::Text => response = response.content("text/plain", plain()),
        }
        if answer.tagged {
            let header =
                utoipa::openapi::HeaderBuilder::new().schema(Some(text())).description(Some("Entity tag"));
            response = response.header("ETag", header.build());
        }
        operation = operation.response(answer.status.to_string(), response.build());
    }
    for (status, codes) in by_status(route.all_refusals()) {
        operation = operation.response(status.to_string(), Ref::from_response_name(refusal_name(&codes)));
    }
    operation
}

fn refusal_name(codes: &[&str]) -> String {
    codes.join("-or-")
}

/// Every combination of codes that some route answers with.
fn refusals(schemas: &mut Schemas) -> BTreeMap<String, Response> {
    let combinations = routes::table().iter().flat_map(|route| by_status(route.all_refusals()).into_values());
    let problem = json(schema_of::<giga_api::wire::Problem>(), schemas);
    let response = |codes: Vec<&str>| {
        let about = format!("code: {}", codes.join(", "));
        let response = ResponseBuilder::new().description(about);
        (refusal_name(&codes), response.content("application/problem+json", problem.clone()).build())
    };
    combinations.map(response).collect()
}

type Schemas = BTreeMap<String, RefOr<Schema>>;

fn by_status(codes: Vec<Code>) -> BTreeMap<u16, Vec<&'static str>> {
    let mut statuses: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
    for code in codes {
        statuses.entry(problem::status(code).as_u16()).or_default().push(code.as_str());
    }
    statuses
}

/// Who may call it, in words.
fn who(route: &Route) -> String {
    let who = match route.access {
        Access::Public => "Needs no token.".to_owned(),
        Access::Role(role) => format!("Needs the role {} or higher.", role.as_str()),
        Access::Factory => "Needs the token of the factory itself.".to_owned(),
        Access::Pool => "Needs a credential of the pool.".to_owned(),
        Access::RoleOrFactory(role) => {
            format!("Needs the role {} or higher, or the token of a factory.", role.as_str())
        }
    };
    let who = if route.from_inside {
        format!("{who} What runs inside a job may call it about that job, with its job token.")
    } else {
        who
    };
    match route.scope {
        Scope::Fleet => format!("{who} The token must be for every product."),
        Scope::Job => format!("{who} A job of another product is answered like one that does not exist."),
        _ => who,
    }
}

fn tag(path: &str) -> &'static str {
    match path.trim_start_matches("/api/fleet/").split('/').next() {
        Some("jobs" | "plan") => "jobs",
        Some("claim" | "accept" | "fail") => "holders",
        Some("factories" | "accounts") => "factories",
        Some("events") => "events",
        Some("topics" | "topic-gate") => "topics",
        Some("budgets" | "products" | "profiles") => "products",
        Some("tokens" | "flags") => "administration",
        _ => "state",
    }
}

fn request_body(body: Body, schemas: &mut Schemas) -> Option<utoipa::openapi::request_body::RequestBody> {
    let builder = RequestBodyBuilder::new();
    let builder = match body {
        Body::None => return None,
        Body::Json(schema) => {
            builder.content("application/json", json(schema, schemas)).required(Some(Required::True))
        }
        Body::OptionalJson(schema) => {
            builder.content("application/json", json(schema, schemas)).required(Some(Required::False))
        }
        Body::Bytes => builder.content("application/octet-stream", plain()).required(Some(Required::True)),
        Body::Profile => builder
            .description(Some(
                "Markdown: the front matter has the defaults, the body is the persona; or the same as JSON",
            ))
            .content("text/markdown", plain())
            .content("application/json", json(schema_of::<giga_api::wire::AddProfileRequest>(), schemas))
            .required(Some(Required::True)),
        Body::Manifest => builder
            .description(Some("Markdown with YAML front matter, or the same as JSON; at most 1 MiB"))
            .content("text/markdown", plain())
            .content("application/json", json(schema_of::<giga_api::wire::SubmitRequest>(), schemas))
            .required(Some(Required::True)),
    };
    Some(builder.build())
}

fn json(schema: SchemaOf, schemas: &mut Schemas) -> utoipa::openapi::Content {
    // `serde_json::Value` is anything, not a type with a name.
    if (schema.name)() == "Value" {
        return ContentBuilder::new().schema(Some((schema.schema)())).build();
    }
    ContentBuilder::new().schema(Some(named(schema, schemas))).build()
}

fn named(schema: SchemaOf, schemas: &mut Schemas) -> RefOr<Schema> {
    Ref::from_schema_name(collect(schema, schemas)).into()
}

fn collect(schema: SchemaOf, schemas: &mut Schemas) -> String {
    let name = (schema.name)().into_owned();
    schemas.insert(name.clone(), (schema.schema)());
    let mut parts = Vec::new();
    (schema.parts)(&mut parts);
    schemas.extend(parts);
    name
}

fn text() -> Schema {
    ObjectBuilder::new().schema_type(Type::String).into()
}

fn plain() -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(text())).build()
}

fn parameter(name: &str, place: ParameterIn, about: &str) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description((!about.is_empty()).then_some(about))
        .schema(Some(text()))
}

fn taking(parameter: ParameterBuilder, takes: Takes, schemas: &mut Schemas) -> ParameterBuilder {
    match takes {
        Takes::Text => parameter,
        Takes::Word(schema) => parameter.schema(Some(named(schema, schemas))),
        Takes::Words(schema) => parameter
            .schema(Some(ArrayBuilder::new().items(named(schema, schemas))))
            .style(Some(ParameterStyle::Form))
            .explode(Some(false)),
    }
}

fn http_method(method: &Method) -> HttpMethod {
    match method.as_str() {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}
