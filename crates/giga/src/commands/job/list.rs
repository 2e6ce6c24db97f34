//! Many jobs at a glance.

use comfy_table::Cell;
use giga_api::wire::Job;
use giga_domain::limits;

use crate::args::ListArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::{Columns, Format, ago, append_page, dash, printable, say, stage_cell};

pub(super) async fn list(args: ListArgs, context: &Context) -> Done {
    let client = context.client()?;
    let wanted = if args.all { usize::MAX } else { args.limit.unwrap_or(limits::PAGE_DEFAULT) };
    let parent = match &args.parent {
        Some(parent) => Some(context.job_id(&client, parent).await?),
        None => None,
    };
    // Zero and the like are the coordinator's to refuse.
    let mut query = args.query(parent, wanted.min(limits::PAGE_MAX));
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
        say(&format!("the newest {}; see more with --limit or --all", page.jobs.len()));
    }
    Ok(())
}

/// Columns that would be empty are left out.
fn jobs_table(jobs: &[Job], context: &Context) -> String {
    let holder = |job: &Job| job.lease.as_ref().map(|lease| lease.factory_id.clone());
    let any_repo = jobs.iter().any(|job| job.repo.is_some());
    let any_holder = jobs.iter().any(|job| job.lease.is_some());
    let mut headings = vec!["ID", "NAME~", "STAGE", "PRIORITY", "PRODUCT"];
    headings.extend(any_repo.then_some("REPO~"));
    headings.extend(any_holder.then_some("FACTORY"));
    headings.push("UPDATED");
    let mut table = Columns::new(&headings);
    for job in jobs {
        let mut row = vec![
            Cell::new(printable(&job.id)),
            Cell::new(printable(&job.name)),
            if job.needs_input {
                Cell::new("needs input").fg(comfy_table::Color::Yellow)
            } else {
                stage_cell(job.stage)
            },
            Cell::new(job.priority),
            Cell::new(printable(&job.product_id)),
        ];
        let repo = if job.repos.is_empty() { job.repo.clone() } else { Some(job.repos.join(", ")) };
        row.extend(any_repo.then(|| Cell::new(printable(dash(repo.as_deref())))));
        row.extend(any_holder.then(|| Cell::new(printable(dash(holder(job).as_deref())))));
        row.push(Cell::new(ago(&job.updated_at, context.output.now)));
        table.row(row);
    }
    table.render()
}
