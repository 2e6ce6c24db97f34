//! Named secrets in PostgreSQL. The table is locked as a whole: a change is rare, and versions follow each other.

use std::collections::BTreeSet;

use giga_domain::ProductId;
use giga_ports::StoreError;

use super::decode_all;
use super::load::texts;
use super::persist::put;
use super::pipeline::{Answers, Pipeline, Ticket};
use super::statements::Statements;
use crate::engine::{SecretWrites, SecretsLoaded};
use crate::rows::{self, JOB_SECRETS};

/// Where the answer will be found.
pub(super) struct Asked(Option<Ticket>);

pub(super) async fn ask<'c>(
    pipeline: &mut Pipeline<'c>,
    statements: &'c Statements,
    products: &BTreeSet<ProductId>,
) -> Asked {
    let any = !products.is_empty();
    pipeline.send_if(any, &statements.lock_job_secrets, Vec::new).await;
    Asked(pipeline.send_if(any, &statements.job_secrets, || vec![texts(products)]).await)
}

impl Asked {
    pub(super) fn read(self, answers: &mut Answers) -> Result<SecretsLoaded, StoreError> {
        let all = decode_all(&answers.take(self.0), &JOB_SECRETS, rows::sealed_secret)?;
        Ok(all.into_iter().map(|s| ((s.secret.product.clone(), s.secret.name.clone()), s)).collect())
    }
}

pub(super) async fn persist<'c>(out: &mut Pipeline<'c>, s: &'c Statements, writes: &SecretWrites) {
    let secrets = writes.put.iter().map(rows::sealed_secret_row);
    put(out, &s.put_job_secrets, &JOB_SECRETS, secrets).await;
    if !writes.delete.is_empty() {
        let (products, names): (Vec<_>, Vec<_>) = writes.delete.iter().cloned().unzip();
        out.send(&s.delete_job_secrets, vec![texts(products), texts(names)]).await;
    }
}
