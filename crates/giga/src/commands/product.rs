//! `giga product …`

use std::fmt::Write;

use giga_api::client::Client;
use giga_api::wire::{
    MergeBy, MergeSettings, MergeStrategy, NetworkLevel, PolicyFloor, Product, SetProductRequest,
};

use super::Done;
use super::context::Context;
use crate::args::{PolicyArgs, ProductCommand, SetProductArgs};
use crate::exit::CliError;
use crate::output::{Columns, Output, joined, printable};

pub(crate) async fn run(command: ProductCommand, context: &Context) -> Done {
    // The product stands on the command line; one from the settings must not contradict it.
    let (client, output) = (context.client_in(None)?, &context.output);
    match command {
        ProductCommand::List => {
            let answer = context.client()?.products().await?;
            let none = "no product has settings yet; all get the same share";
            output.list(&answer.json, ("/products", "/productId"), none, || list(&answer.products))
        }
        ProductCommand::Show(args) => {
            let product = client.product(&args.product).await?;
            output.one(&product.json, "/productId", || text(&product))
        }
        ProductCommand::Set(args) => set(args, &client, output).await,
        ProductCommand::Policy(args) => set_policy(args, &client, output).await,
    }
}

async fn set_policy(args: PolicyArgs, client: &Client, output: &Output) -> Done {
    let PolicyArgs { product, quorum, auto_ship, engines, sandbox, network, .. } = args;
    let product = product.product;
    let now = client.product(&product).await?;
    let was = &now.policy;
    let engines = engines.map(|engines| engines.into_iter().filter(|engine| !engine.is_empty()).collect());
    let policy = PolicyFloor {
        quorum: quorum.unwrap_or(was.quorum),
        auto_ship: auto_ship.unwrap_or(was.auto_ship),
        engines: engines.unwrap_or_else(|| was.engines.clone()),
        sandbox: sandbox.unwrap_or(was.sandbox),
        network: network.unwrap_or(was.network),
        permissions: args.permissions.map_or(was.permissions, |most| most.0),
        max_children: args.max_children.map_or(was.max_children, |most| most.0),
        max_depth: args.max_depth.map_or(was.max_depth, |most| most.0),
        max_queued_jobs: args.max_queued_jobs.map_or(was.max_queued_jobs, |most| most.0),
        max_artifact_mib: args.max_artifact_mib.map_or(was.max_artifact_mib, |most| most.0),
    };
    if policy == *was {
        let what = "say what to set: --quorum, --auto-ship, --engines, --sandbox, --network, --permissions, --max-children, \
                    --max-depth, --max-queued-jobs or --max-artifact-mib; it is as you say already, or you said nothing";
        return Err(CliError::Usage(what.to_owned()));
    }
    let request = SetProductRequest { policy: Some(policy), ..as_it_is(&now) };
    let product = client.set_product(&product, &request, Some(now.rev)).await?;
    output.one(&product.json, "/productId", || text(&product))
}

/// A request that changes nothing.
fn as_it_is(now: &Product) -> SetProductRequest {
    SetProductRequest {
        share: Some(now.share),
        weights: Some(now.weights),
        repos: now.repos.clone(),
        merge: Some(now.merge.clone()),
        merge_checks: now.merge_checks.clone(),
        merge_batch: Some(now.merge_batch),
        policy: Some(now.policy.clone()),
    }
}

/// What is not named stays: read, changed, and written only if nobody else wrote meanwhile.
async fn set(args: SetProductArgs, client: &Client, output: &Output) -> Done {
    let merge = (&args.merge, &args.merge_by, &args.merge_message, &args.merge_author);
    let nothing = args.share.is_none() && args.repos.is_none() && args.weights.is_empty();
    if nothing
        && merge == (&None, &None, &None, &None)
        && args.merge_checks.is_empty()
        && args.merge_batch.is_none()
    {
        let what = "say what to set: --share, --repos, --weight, --merge, --merge-by, --merge-message, \
                    --merge-author, --merge-check or --merge-batch";
        return Err(CliError::Usage(what.to_owned()));
    }
    let product = &args.product.product;
    let now = client.product(product).await?;
    let mut weights = now.weights;
    for (term, weight) in args.weights {
        weights.0[term] = weight;
    }
    let repos = args.repos.map(|repos| repos.into_iter().filter(|repo| !repo.is_empty()).collect());
    let request = SetProductRequest {
        share: Some(args.share.unwrap_or(now.share)),
        weights: Some(weights),
        repos: repos.unwrap_or_else(|| now.repos.clone()),
        merge: Some(MergeSettings {
            strategy: args.merge.or(now.merge.strategy),
            by: args.merge_by.or(now.merge.by),
            feedback: args.merge_feedback.or(now.merge.feedback),
            message: given_or(args.merge_message, now.merge.message.as_deref()),
            author: given_or(args.merge_author, now.merge.author.as_deref()),
        }),
        merge_checks: if args.merge_checks.is_empty() {
            now.merge_checks.clone()
        } else {
            args.merge_checks.into_iter().filter(|check| !check.is_empty()).collect()
        },
        merge_batch: Some(args.merge_batch.unwrap_or(now.merge_batch)),
        policy: Some(now.policy.clone()),
    };
    let product = client.set_product(product, &request, Some(now.rev)).await?;
    output.one(&product.json, "/productId", || text(&product))
}

/// An empty value takes away what was set.
fn given_or(given: Option<String>, now: Option<&str>) -> Option<String> {
    given.map_or_else(|| now.map(str::to_owned), |text| Some(text).filter(|text| !text.is_empty()))
}

fn list(products: &[Product]) -> String {
    let mut table = Columns::new(&["PRODUCT", "SHARE", "REPOS~"]);
    for product in products {
        let cells = [product.product_id.clone(), product.share.to_string(), joined(&product.repos)];
        table.row(cells.map(|cell| printable(&cell)));
    }
    table.right(&[1]);
    table.render()
}

/// What it asks for, in a line.
fn policy_text(policy: &PolicyFloor) -> String {
    let most = |what: &str, most: Option<u64>| most.map(|most| format!("at most {most} {what}"));
    let rules = [
        (policy.quorum > 0).then(|| format!("at least {} approval(s)", policy.quorum)),
        (!policy.auto_ship).then(|| "nothing ships by itself".to_owned()),
        (!policy.engines.is_empty()).then(|| format!("engines {}", policy.engines.join(", "))),
        policy.sandbox.then(|| "sandbox".to_owned()),
        (policy.network != NetworkLevel::Open).then(|| format!("network {}", policy.network)),
        policy.permissions.map(|most| format!("engines do no more than `{most}` without asking")),
        most("children per job", policy.max_children.map(u64::from)),
        policy.max_depth.map(|depth| format!("children at most {depth} deep")),
        most("jobs queued", policy.max_queued_jobs),
        most("MiB of artifacts", policy.max_artifact_mib),
    ];
    let rules: Vec<String> = rules.into_iter().flatten().collect();
    if rules.is_empty() { "none".to_owned() } else { rules.join("; ") }
}

fn text(product: &Product) -> String {
    let mut text = format!("\x1b[1m{}\x1b[0m\n", printable(&product.product_id));
    let weights = product.weights.0.iter().map(|(term, weight)| format!("{term} {weight}"));
    let weights = weights.collect::<Vec<_>>().join(", ");
    let MergeSettings { strategy, by, feedback, message, author } = &product.merge;
    let merge = [
        Some(format!("{} by {}", strategy.unwrap_or(MergeStrategy::Merge), by.unwrap_or(MergeBy::Push))),
        Some(format!("up to {} together", product.merge_batch)),
        feedback.map(|feedback| format!("feedback as {feedback}")),
        message.as_ref().map(|message| format!("message `{message}`")),
        author.as_ref().map(|author| format!("author {author}")),
    ];
    let merge = merge.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let facts = [
        ("share", product.share.to_string()),
        ("repos", joined(&product.repos)),
        ("weights", weights),
        ("merges", merge),
        ("checks", joined(&product.merge_checks)),
        ("policy", policy_text(&product.policy)),
    ];
    for (name, value) in facts {
        let _ = writeln!(text, "  {name:<7}  {}", printable(&value));
    }
    text
}
