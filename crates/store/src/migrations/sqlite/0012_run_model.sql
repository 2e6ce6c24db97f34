-- Which model a run was done with, as its holder says when it starts.
ALTER TABLE runs ADD COLUMN model TEXT;
