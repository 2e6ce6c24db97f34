-- What a job and people say to each other, and when its next question is given up.
ALTER TABLE jobs ADD COLUMN conversation TEXT;
ALTER TABLE jobs ADD COLUMN question_due BIGINT;
CREATE INDEX jobs_that_ask ON jobs (question_due, id) WHERE question_due IS NOT NULL;
