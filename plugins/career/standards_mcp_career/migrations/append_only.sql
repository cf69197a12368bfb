-- INSERT OR REPLACE deletes a row without the trigger on DELETE, so it has one of its own.
CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
BEGIN SELECT RAISE(ABORT, 'audit events are never changed'); END;
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events
BEGIN SELECT RAISE(ABORT, 'audit events are never deleted'); END;
CREATE TRIGGER audit_events_no_replace BEFORE INSERT ON audit_events
WHEN NEW.event_id IN (SELECT event_id FROM audit_events)
  OR NEW.rowid IN (SELECT rowid FROM audit_events)
BEGIN SELECT RAISE(ABORT, 'audit events are never replaced'); END;
