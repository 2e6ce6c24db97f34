-- Who did what: of the long history of jobs, the part that people caused, and what is about no job.
CREATE INDEX IF NOT EXISTS events_by_people ON events (pos) WHERE substr(actor, 1, 15) = '{"kind":"token"';
CREATE INDEX IF NOT EXISTS events_of_no_job ON events (pos) WHERE seq IS NULL;
