//! Which rows a list has now, after its filter, and in which order. `update` moves among them, `view` draws them.

use giga_api::wire::{Alert, Budget, Factory, Job, Stage, Topic};

use super::{Column, Cursor, List, Model, Page, Tab};

/// A column of the board with the jobs that pass the filter.
#[derive(Debug)]
pub struct BoardColumn<'a> {
    pub column: Column,
    pub total: u64,
    pub jobs: Vec<&'a Job>,
}

fn has(filter: &str, texts: &[&str]) -> bool {
    let wanted = filter.to_lowercase();
    wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wanted))
}

impl Model {
    pub fn shown_factories(&self) -> Vec<&Factory> {
        let factories = self.factories.iter().flatten();
        let filter = &self.factory_list.filter;
        let mut shown: Vec<&Factory> = factories
            .filter(|factory| {
                let caps = factory.capabilities.join(" ");
                has(filter, &[&factory.id, factory.state.as_str(), factory.health.as_str(), &caps])
            })
            .collect();
        shown.sort_by(|a, b| a.id.cmp(&b.id));
        shown
    }

    /// In the coordinator's order: worst first.
    pub fn shown_alerts(&self) -> Vec<&Alert> {
        let filter = &self.alert_list.filter;
        let alerts = self.alerts.iter().flatten();
        alerts.filter(|alert| has(filter, &[alert.code.as_str(), &alert.title, &alert.message])).collect()
    }

    pub fn shown_budgets(&self) -> Vec<&Budget> {
        let filter = &self.budget_list.filter;
        self.budgets.iter().flatten().filter(|budget| has(filter, &[&budget.product_id])).collect()
    }

    pub fn shown_topics(&self) -> Vec<&Topic> {
        let filter = &self.topic_list.filter;
        let topics = self.topics.iter().flat_map(|list| &list.topics);
        topics.filter(|topic| has(filter, &[&topic.name, &topic.product_id])).collect()
    }

    pub fn shown_jobs(&self) -> Vec<&Job> {
        let filter = &self.jobs.list.filter;
        self.jobs
            .rows
            .iter()
            .filter(|job| has(filter, &[&job.name]))
            // What was answered fits; what is left of another question may not.
            .filter(|job| self.jobs.loaded || self.jobs.group.has(job.stage))
            .collect()
    }

    /// How many jobs are in these stages, by the metrics.
    pub fn in_stages(&self, stages: &[Stage]) -> u64 {
        let products = self.metrics.iter().flat_map(|metrics| &metrics.products);
        products.flat_map(|product| stages.iter().filter_map(|stage| product.by_stage.get(stage))).sum()
    }

    /// Columns that have something, and those that everybody looks for.
    pub fn board_columns(&self) -> Vec<BoardColumn<'_>> {
        Column::ALL
            .into_iter()
            .map(|column| {
                let jobs = self.board.columns.get(&column).into_iter().flatten();
                let jobs = jobs.filter(|job| has(&self.board.filter, &[&job.name])).collect();
                BoardColumn { column, total: self.in_stages(&column.stages()), jobs }
            })
            .filter(|shown| {
                let seldom = matches!(shown.column, Column::Blocked | Column::Testing);
                !seldom || shown.total > 0 || !shown.jobs.is_empty() || shown.column == self.board.column
            })
            .collect()
    }

    /// The keys of the rows of what is in front.
    pub fn keys(&self) -> Vec<String> {
        match (self.page(), self.tab) {
            (Some(Page::Job(_)), _) => Vec::new(),
            (Some(Page::Factory { id, .. }), _) => {
                self.factory(id).map(|factory| factory.running.clone()).unwrap_or_default()
            }
            (None, Tab::Board) => {
                let columns = self.board_columns();
                let here = columns.iter().find(|shown| shown.column == self.board.column);
                here.map(|shown| shown.jobs.iter().map(|job| job.id.clone()).collect()).unwrap_or_default()
            }
            (None, Tab::Factories) => self.shown_factories().iter().map(|f| f.id.clone()).collect(),
            (None, Tab::Alerts) => self.shown_alerts().into_iter().map(alert_key).collect(),
            (None, Tab::Jobs) => self.shown_jobs().iter().map(|job| job.id.clone()).collect(),
            (None, Tab::Budgets) => self.shown_budgets().iter().map(|b| b.product_id.clone()).collect(),
            (None, Tab::Topics) => self.shown_topics().iter().map(|t| topic_key(t)).collect(),
        }
    }

    /// The key of the row that is selected.
    pub fn selected(&self) -> Option<String> {
        let keys = self.keys();
        self.cursor().and_then(|cursor| cursor.key(&keys).map(str::to_owned))
    }

    pub fn cursor(&self) -> Option<&Cursor> {
        match (self.page(), self.tab) {
            (Some(Page::Job(_)), _) => None,
            (Some(Page::Factory { cursor, .. }), _) => Some(cursor),
            (None, Tab::Board) => self.board.cursors.get(&self.board.column),
            (None, tab) => self.list(tab).map(|list| &list.cursor),
        }
    }

    pub fn cursor_mut(&mut self) -> Option<&mut Cursor> {
        if self.pages.is_empty() {
            return match self.tab {
                Tab::Board => Some(self.board.cursors.entry(self.board.column).or_default()),
                tab => self.list_mut(tab).map(|list| &mut list.cursor),
            };
        }
        match self.pages.last_mut() {
            Some(Page::Factory { cursor, .. }) => Some(cursor),
            _ => None,
        }
    }

    pub fn list(&self, tab: Tab) -> Option<&List> {
        Some(match tab {
            Tab::Board => return None,
            Tab::Factories => &self.factory_list,
            Tab::Alerts => &self.alert_list,
            Tab::Jobs => &self.jobs.list,
            Tab::Budgets => &self.budget_list,
            Tab::Topics => &self.topic_list,
        })
    }

    fn list_mut(&mut self, tab: Tab) -> Option<&mut List> {
        Some(match tab {
            Tab::Board => return None,
            Tab::Factories => &mut self.factory_list,
            Tab::Alerts => &mut self.alert_list,
            Tab::Jobs => &mut self.jobs.list,
            Tab::Budgets => &mut self.budget_list,
            Tab::Topics => &mut self.topic_list,
        })
    }

    /// The filter of what is in front; pages have none.
    pub fn filter(&self) -> Option<&str> {
        match (self.page(), self.tab) {
            (Some(_), _) => None,
            (None, Tab::Board) => Some(&self.board.filter),
            (None, tab) => self.list(tab).map(|list| list.filter.as_str()),
        }
    }

    pub fn filter_mut(&mut self) -> Option<&mut String> {
        match (self.page(), self.tab) {
            (Some(_), _) => None,
            (None, Tab::Board) => Some(&mut self.board.filter),
            (None, tab) => self.list_mut(tab).map(|list| &mut list.filter),
        }
    }

    /// Rows of the list in front that the screen has room for.
    pub fn list_height(&self) -> usize {
        let body = self.body_height();
        match (self.page(), self.tab) {
            (None, Tab::Board) => body.saturating_sub(crate::view::board::head_height(self) + 1),
            (Some(Page::Factory { .. }), _) => body.saturating_sub(crate::view::factories::HEAD),
            (None, Tab::Budgets) => body.saturating_sub(1) / crate::view::budgets::ROW,
            (None, Tab::Alerts) => body.saturating_sub(1 + crate::view::alerts::FOOT),
            // The titles and the lines below.
            (None, Tab::Topics) => body.saturating_sub(3),
            // The question and the titles of the columns.
            (None, Tab::Jobs) => body.saturating_sub(2),
            _ => body.saturating_sub(1),
        }
    }
}

pub fn topic_key(topic: &Topic) -> String {
    format!("{}/{}", topic.product_id, topic.name)
}

pub fn alert_key(alert: &Alert) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{} {} {} {}", alert.code, part(&alert.job_id), part(&alert.factory_id), part(&alert.product_id))
}
