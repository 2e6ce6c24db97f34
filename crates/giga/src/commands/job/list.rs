//! Many jobs at a glance.

use giga_api::client::JobQuery;
use giga_api::wire::Job;
use giga_domain::limits;

use crate::args::ListArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::{Columns, Format, ago, append_page, dash, printable, say, stage_cell};

pub(super) async fn list(args: ListArgs, context: &Context) -> Done {
    let client = context.client()?;
    let wanted = if args.all { usize::MAX } else { args.limit.unwrap_or(limits::PAGE_DEFAULT) };
    let mut query = JobQuery {
        stages: args.stage,
        priorities: args.priority,
        repo: args.repo,
        factory: args.factory,
        name: args.name,
        // Zero and the like are the coordinator's to refuse.
        limit: Some(wanted.min(limits::PAGE_MAX)),
        cursor: None,
    };
    let mut page = client.jobs(&query).await?;
    while let Some(cursor) = page.value.next_cursor.take() {
        if page.jobs.len() >= wanted {
            page.value.next_cursor = Some(cursor);
            break;
        }
        query.cursor = Some(cursor);
        query.limit = Some((wanted - page.jobs.len()).min(limits::PAGE_MAX));
        let next = client.jobs(&query).await?;
        page.value.jobs.extend(next.value.jobs);
        page.value.next_cursor = next.value.next_cursor;
        append_page(&mut page.json, next.json, "jobs", "nextCursor");
    }
    context.output.list(&page.json, ("/jobs", "/id"), "no jobs", || jobs_table(&page.jobs, context))?;
    if page.next_cursor.is_some() && context.output.format == Format::Table {
        say(&format!("the newest {}; --limit or --all shows more", page.jobs.len()));
    }
    Ok(())
}

fn jobs_table(jobs: &[Job], context: &Context) -> String {
    let mut table =
        Columns::new(&["ID", "NAME", "STAGE", "PRIORITY", "PRODUCT", "REPO", "FACTORY", "UPDATED"]);
    for job in jobs {
        let factory = job.lease.as_ref().map(|lease| lease.factory_id.as_str());
        table.row([
            printable(&job.id).into(),
            printable(&job.name).into(),
            stage_cell(&job.stage),
            printable(&job.priority).into(),
            printable(&job.product_id).into(),
            printable(dash(job.repo.as_deref())).into(),
            printable(dash(factory)).into(),
            comfy_table::Cell::new(ago(&job.updated_at, context.output.now)),
        ]);
    }
    table.render()
}
