CREATE TABLE catalog_applied (
	catalog TEXT NOT NULL,
	database_name TEXT NOT NULL,
	name TEXT NOT NULL,
	spec JSONB NOT NULL,
	CONSTRAINT pk_catalog_applied PRIMARY KEY (catalog, database_name, name)
);

CREATE TABLE catalog_delivery (
	catalog TEXT NOT NULL,
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	database_name TEXT NOT NULL,
	name TEXT NOT NULL,
	contract_id TEXT NOT NULL,
	changes INTEGER NOT NULL,
	settled INTEGER NOT NULL,
	properties JSONB,
	lease_until TIMESTAMP WITH TIME ZONE,
	attempt INTEGER NOT NULL,
	failures INTEGER NOT NULL,
	CONSTRAINT pk_catalog_delivery PRIMARY KEY (catalog, contract, object)
);

CREATE TABLE catalog_delivery_mark (
	catalog TEXT NOT NULL,
	marks JSONB NOT NULL,
	CONSTRAINT pk_catalog_delivery_mark PRIMARY KEY (catalog)
);

CREATE TABLE catalog_log (
	number SERIAL NOT NULL,
	run_id VARCHAR(36) NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	registry TEXT NOT NULL,
	catalog TEXT NOT NULL,
	database_name TEXT NOT NULL,
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	grade TEXT NOT NULL,
	ending TEXT NOT NULL,
	before TEXT NOT NULL,
	after TEXT NOT NULL,
	error TEXT NOT NULL,
	CONSTRAINT pk_catalog_log PRIMARY KEY (number)
);

CREATE INDEX ix_catalog_log_run ON catalog_log (run_id, database_name, name);

CREATE TABLE catalog_table (
	database_name TEXT NOT NULL,
	name TEXT NOT NULL,
	version INTEGER NOT NULL,
	spec JSONB NOT NULL,
	CONSTRAINT pk_catalog_table PRIMARY KEY (database_name, name)
);

CREATE TABLE channel_pause (
	channel TEXT NOT NULL,
	target TEXT NOT NULL,
	until TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_channel_pause PRIMARY KEY (channel, target)
);

CREATE TABLE check_run (
	id SERIAL NOT NULL,
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	contract_version TEXT NOT NULL,
	scope TEXT NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	jobs INTEGER NOT NULL,
	rules JSONB,
	staged TEXT,
	verdict VARCHAR(16),
	CONSTRAINT pk_check_run PRIMARY KEY (id)
);

CREATE INDEX ix_check_run_what ON check_run (contract, object, at);

CREATE TABLE consumer_notice (
	number SERIAL NOT NULL,
	event_id VARCHAR(36) NOT NULL,
	target TEXT NOT NULL,
	body TEXT NOT NULL,
	attributes JSONB NOT NULL,
	written_at TIMESTAMP WITH TIME ZONE NOT NULL,
	taken_until TIMESTAMP WITH TIME ZONE,
	attempts INTEGER NOT NULL,
	problem TEXT NOT NULL,
	sent_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_consumer_notice PRIMARY KEY (number),
	CONSTRAINT uq_consumer_notice_target UNIQUE (event_id, target)
);

CREATE INDEX ix_consumer_notice_sent_at ON consumer_notice (sent_at);

CREATE INDEX ix_consumer_notice_waiting ON consumer_notice (target) WHERE sent_at IS NULL;

CREATE TABLE contract_holder (
	contract TEXT NOT NULL,
	file TEXT NOT NULL,
	since TIMESTAMP WITH TIME ZONE NOT NULL,
	registry TEXT,
	gone_since TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_contract_holder PRIMARY KEY (contract)
);

CREATE TABLE cycle (
	id SERIAL NOT NULL,
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	slo TEXT NOT NULL,
	due_at TIMESTAMP WITH TIME ZONE NOT NULL,
	breach_at TIMESTAMP WITH TIME ZONE NOT NULL,
	nominal VARCHAR(32) NOT NULL,
	note VARCHAR(16) NOT NULL,
	partitions JSONB NOT NULL,
	status VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	delivered_at TIMESTAMP WITH TIME ZONE,
	first_seen_at TIMESTAMP WITH TIME ZONE,
	source VARCHAR(8),
	claims JSONB,
	arriving_since TIMESTAMP WITH TIME ZONE,
	look_again_at TIMESTAMP WITH TIME ZONE,
	gone_since TIMESTAMP WITH TIME ZONE,
	anew_at TIMESTAMP WITH TIME ZONE,
	blind TEXT,
	held TEXT,
	held_until TIMESTAMP WITH TIME ZONE,
	told BOOLEAN NOT NULL,
	contract_version TEXT NOT NULL,
	contract_hash VARCHAR(64),
	tzdata VARCHAR(16) NOT NULL,
	calendar VARCHAR(32),
	dq VARCHAR(32),
	excuse TEXT,
	recorded_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_cycle PRIMARY KEY (id),
	CONSTRAINT uq_cycle_contract_object_slo_due_at UNIQUE (contract, object, slo, due_at)
);

CREATE INDEX ix_cycle_look_again ON cycle (look_again_at);

CREATE INDEX ix_cycle_status ON cycle (status, contract);

CREATE TABLE cycle_excuse (
	id SERIAL NOT NULL,
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	slo TEXT NOT NULL,
	due_at TIMESTAMP WITH TIME ZONE NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	by TEXT NOT NULL,
	reason TEXT NOT NULL,
	undone BOOLEAN NOT NULL,
	CONSTRAINT pk_cycle_excuse PRIMARY KEY (id)
);

CREATE INDEX ix_cycle_excuse_due_at ON cycle_excuse (contract, object, slo, due_at);

CREATE TABLE cycle_month (
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	slo TEXT NOT NULL,
	month VARCHAR(7) NOT NULL,
	status VARCHAR(16) NOT NULL,
	cycles INTEGER NOT NULL,
	CONSTRAINT pk_cycle_month PRIMARY KEY (contract, object, slo, month, status)
);

CREATE TABLE discovered_folder (
	key VARCHAR(64) NOT NULL,
	root TEXT NOT NULL,
	print VARCHAR(64) NOT NULL,
	parts TEXT NOT NULL,
	CONSTRAINT pk_discovered_folder PRIMARY KEY (key)
);

CREATE TABLE discovery_run (
	number SERIAL NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	errors INTEGER NOT NULL,
	sources TEXT NOT NULL,
	domains TEXT NOT NULL,
	owners TEXT NOT NULL,
	shortfalls TEXT NOT NULL,
	uncovered TEXT,
	CONSTRAINT pk_discovery_run PRIMARY KEY (number)
);

CREATE TABLE heartbeat (
	name VARCHAR(16) NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_heartbeat PRIMARY KEY (name)
);

CREATE TABLE incident (
	id VARCHAR(36) NOT NULL,
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	group_id TEXT NOT NULL,
	severity VARCHAR(8) NOT NULL,
	title TEXT NOT NULL,
	state VARCHAR(16) NOT NULL,
	revision INTEGER NOT NULL,
	breaches INTEGER NOT NULL,
	opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
	acked_at TIMESTAMP WITH TIME ZONE,
	acked_by TEXT,
	resolved_at TIMESTAMP WITH TIME ZONE,
	open_since TIMESTAMP WITH TIME ZONE,
	period_seconds INTEGER,
	changes JSONB,
	flapping_since TIMESTAMP WITH TIME ZONE,
	root_id VARCHAR(36),
	grace_seconds INTEGER,
	holds_up JSONB,
	silenced_until TIMESTAMP WITH TIME ZONE,
	silenced_why TEXT,
	CONSTRAINT pk_incident PRIMARY KEY (id)
);

CREATE INDEX ix_incident_key ON incident (contract, object, group_id, opened_at);

CREATE INDEX ix_incident_root_id ON incident (root_id);

CREATE UNIQUE INDEX uq_incident_open ON incident (contract, object, group_id) WHERE resolved_at IS NULL;

CREATE TABLE kept_keys (
	dataset TEXT NOT NULL,
	question VARCHAR(64) NOT NULL,
	folder TEXT NOT NULL,
	print VARCHAR(64) NOT NULL,
	rows BIGINT NOT NULL,
	members JSONB,
	codes BYTEA NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_kept_keys PRIMARY KEY (dataset, question, folder)
);

CREATE TABLE lake_grant (
	catalog TEXT NOT NULL,
	database_name TEXT NOT NULL,
	name TEXT NOT NULL,
	principal TEXT NOT NULL,
	filter TEXT NOT NULL,
	columns JSONB NOT NULL,
	files JSONB NOT NULL,
	expression TEXT NOT NULL,
	filter_columns JSONB NOT NULL,
	CONSTRAINT pk_lake_grant PRIMARY KEY (catalog, database_name, name, principal, filter)
);

CREATE TABLE lake_tag (
	catalog TEXT NOT NULL,
	tag TEXT NOT NULL,
	database_name TEXT NOT NULL,
	name TEXT NOT NULL,
	columns JSONB NOT NULL,
	CONSTRAINT pk_lake_tag PRIMARY KEY (catalog, tag, database_name, name)
);

CREATE TABLE lineage (
	contract TEXT NOT NULL,
	digest TEXT NOT NULL,
	inputs JSONB,
	CONSTRAINT pk_lineage PRIMARY KEY (contract)
);

CREATE TABLE part_count (
	dataset TEXT NOT NULL,
	folder TEXT NOT NULL,
	print VARCHAR(64) NOT NULL,
	counts JSONB NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_part_count PRIMARY KEY (dataset, folder)
);

CREATE TABLE past_tick (
	id SERIAL NOT NULL,
	name VARCHAR(16) NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_past_tick PRIMARY KEY (id)
);

CREATE INDEX ix_past_tick ON past_tick (name, at);

CREATE TABLE publication (
	id VARCHAR(36) NOT NULL,
	delivery VARCHAR(36) NOT NULL,
	revision INTEGER NOT NULL,
	rows BIGINT,
	previous_rows BIGINT,
	folder TEXT,
	run TEXT NOT NULL,
	begun_at TIMESTAMP WITH TIME ZONE NOT NULL,
	published_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_publication PRIMARY KEY (id),
	CONSTRAINT uq_publication_revision UNIQUE (delivery, revision)
);

CREATE INDEX ix_publication_published_at ON publication (published_at);

CREATE TABLE publication_begun (
	delivery VARCHAR(36) NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_publication_begun PRIMARY KEY (delivery)
);

CREATE TABLE receipt (
	id VARCHAR(36) NOT NULL,
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	partition TEXT NOT NULL,
	due_at TIMESTAMP WITH TIME ZONE,
	delivered_at TIMESTAMP WITH TIME ZONE NOT NULL,
	rows BIGINT,
	rows_by JSONB,
	contract_version TEXT NOT NULL,
	revision INTEGER DEFAULT '1' NOT NULL,
	server TEXT,
	CONSTRAINT pk_receipt PRIMARY KEY (id)
);

CREATE INDEX ix_receipt_what ON receipt (contract, object, partition);

CREATE TABLE resting_contract (
	file TEXT NOT NULL,
	content VARCHAR(64) NOT NULL,
	terms VARCHAR(64) NOT NULL,
	contract TEXT NOT NULL,
	slos INTEGER NOT NULL,
	since TIMESTAMP WITH TIME ZONE,
	until TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_resting_contract PRIMARY KEY (file)
);

CREATE TABLE resting_part (
	file TEXT NOT NULL,
	cycle_id INTEGER NOT NULL,
	part INTEGER NOT NULL,
	status VARCHAR(16) NOT NULL,
	told BOOLEAN NOT NULL,
	held_until TIMESTAMP WITH TIME ZONE,
	label TEXT NOT NULL,
	root TEXT,
	path TEXT,
	CONSTRAINT pk_resting_part PRIMARY KEY (file, cycle_id, part)
);

CREATE TABLE schedule_entry (
	catalog TEXT NOT NULL,
	group_name TEXT NOT NULL,
	registry TEXT NOT NULL,
	name TEXT NOT NULL,
	contract TEXT NOT NULL,
	promise TEXT NOT NULL,
	digest TEXT NOT NULL,
	modified TEXT NOT NULL,
	CONSTRAINT pk_schedule_entry PRIMARY KEY (catalog, group_name, registry, name)
);

CREATE TABLE silence (
	id SERIAL NOT NULL,
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	group_id TEXT NOT NULL,
	reason TEXT NOT NULL,
	by TEXT NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	until TIMESTAMP WITH TIME ZONE NOT NULL,
	ended_at TIMESTAMP WITH TIME ZONE,
	ended_by TEXT,
	CONSTRAINT pk_silence PRIMARY KEY (id)
);

CREATE INDEX ix_silence_until ON silence (until);

CREATE TABLE slo_terms (
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	slo TEXT NOT NULL,
	product TEXT NOT NULL,
	objective VARCHAR(32) NOT NULL,
	window_seconds BIGINT NOT NULL,
	expects_new_data BOOLEAN NOT NULL,
	CONSTRAINT pk_slo_terms PRIMARY KEY (contract, object, slo)
);

CREATE TABLE slo_watermark (
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	slo TEXT NOT NULL,
	through TIMESTAMP WITH TIME ZONE NOT NULL,
	delivered_at TIMESTAMP WITH TIME ZONE,
	root TEXT,
	budget VARCHAR(16),
	CONSTRAINT pk_slo_watermark PRIMARY KEY (contract, object, slo)
);

CREATE TABLE storage_event (
	contract TEXT NOT NULL,
	object TEXT NOT NULL,
	server TEXT NOT NULL,
	partition TEXT NOT NULL,
	marker BOOLEAN NOT NULL,
	first_at TIMESTAMP WITH TIME ZONE,
	newest_at TIMESTAMP WITH TIME ZONE,
	removed_at TIMESTAMP WITH TIME ZONE,
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_storage_event PRIMARY KEY (contract, object, server, partition, marker)
);

CREATE TABLE table_commit (
	place TEXT NOT NULL,
	ident TEXT NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	brought JSONB NOT NULL,
	took JSONB,
	CONSTRAINT pk_table_commit PRIMARY KEY (place, ident)
);

CREATE TABLE table_log (
	place TEXT NOT NULL,
	since TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_table_log PRIMARY KEY (place)
);

CREATE TABLE table_metadata (
	digest VARCHAR(64) NOT NULL,
	object TEXT NOT NULL,
	contract TEXT NOT NULL,
	print VARCHAR(64) NOT NULL,
	place JSONB NOT NULL,
	facts JSONB NOT NULL,
	CONSTRAINT pk_table_metadata PRIMARY KEY (digest, object)
);

CREATE TABLE catalog_partition (
	database_name TEXT NOT NULL,
	table_name TEXT NOT NULL,
	partition_path TEXT NOT NULL,
	part_values JSONB NOT NULL,
	location TEXT NOT NULL,
	CONSTRAINT pk_catalog_partition PRIMARY KEY (database_name, table_name, partition_path),
	CONSTRAINT fk_catalog_partition_table FOREIGN KEY(database_name, table_name) REFERENCES catalog_table (database_name, name) ON DELETE CASCADE
);

CREATE TABLE check_result (
	run_id INTEGER NOT NULL,
	clause TEXT NOT NULL,
	"check" TEXT NOT NULL,
	property TEXT NOT NULL,
	status VARCHAR(8) NOT NULL,
	severity VARCHAR(8) NOT NULL,
	observed TEXT NOT NULL,
	allowed TEXT NOT NULL,
	message TEXT NOT NULL,
	value FLOAT,
	samples JSONB NOT NULL,
	measured JSONB,
	name TEXT,
	answered_by VARCHAR(10),
	CONSTRAINT pk_check_result PRIMARY KEY (run_id, clause, "check"),
	CONSTRAINT fk_check_result_run_id_check_run FOREIGN KEY(run_id) REFERENCES check_run (id)
);

CREATE TABLE cycle_event (
	id SERIAL NOT NULL,
	cycle_id INTEGER NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	before VARCHAR(16) NOT NULL,
	after VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	proof JSONB,
	CONSTRAINT pk_cycle_event PRIMARY KEY (id),
	CONSTRAINT fk_cycle_event_cycle_id_cycle FOREIGN KEY(cycle_id) REFERENCES cycle (id)
);

CREATE INDEX ix_cycle_event_cycle_id ON cycle_event (cycle_id);

CREATE TABLE cycle_state (
	id SERIAL NOT NULL,
	cycle_id INTEGER NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	status VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	delivered_at TIMESTAMP WITH TIME ZONE,
	first_seen_at TIMESTAMP WITH TIME ZONE,
	source VARCHAR(8),
	claims JSONB,
	arriving_since TIMESTAMP WITH TIME ZONE,
	gone_since TIMESTAMP WITH TIME ZONE,
	anew_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_cycle_state PRIMARY KEY (id),
	CONSTRAINT fk_cycle_state_cycle_id_cycle FOREIGN KEY(cycle_id) REFERENCES cycle (id)
);

CREATE INDEX ix_cycle_state_cycle_id ON cycle_state (cycle_id);

CREATE TABLE incident_event (
	id SERIAL NOT NULL,
	incident_id VARCHAR(36) NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	kind VARCHAR(16) NOT NULL,
	revision INTEGER NOT NULL,
	subject TEXT NOT NULL,
	detail TEXT NOT NULL,
	severity VARCHAR(8),
	title TEXT,
	CONSTRAINT pk_incident_event PRIMARY KEY (id),
	CONSTRAINT fk_incident_event_incident_id_incident FOREIGN KEY(incident_id) REFERENCES incident (id)
);

CREATE INDEX ix_incident_event_incident_id ON incident_event (incident_id);

CREATE TABLE incident_subject (
	incident_id VARCHAR(36) NOT NULL,
	subject TEXT NOT NULL,
	opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
	closed_at TIMESTAMP WITH TIME ZONE,
	facts JSONB NOT NULL,
	closing_facts JSONB NOT NULL,
	ended VARCHAR(16),
	CONSTRAINT pk_incident_subject PRIMARY KEY (incident_id, subject),
	CONSTRAINT fk_incident_subject_incident_id_incident FOREIGN KEY(incident_id) REFERENCES incident (id)
);

CREATE TABLE message (
	incident_id VARCHAR(36) NOT NULL,
	channel TEXT NOT NULL,
	target TEXT NOT NULL,
	place TEXT NOT NULL,
	reference TEXT NOT NULL,
	thread TEXT DEFAULT '' NOT NULL,
	created_revision INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	CONSTRAINT pk_message PRIMARY KEY (incident_id, channel, target),
	CONSTRAINT fk_message_incident_id_incident FOREIGN KEY(incident_id) REFERENCES incident (id)
);

CREATE TABLE outbox (
	id SERIAL NOT NULL,
	incident_id VARCHAR(36) NOT NULL,
	channel TEXT NOT NULL,
	target TEXT NOT NULL,
	operation VARCHAR(32) NOT NULL,
	revision INTEGER NOT NULL,
	state VARCHAR(9) NOT NULL,
	attempt INTEGER NOT NULL,
	not_before TIMESTAMP WITH TIME ZONE NOT NULL,
	wait VARCHAR(10) DEFAULT '' NOT NULL,
	quiet TEXT DEFAULT '' NOT NULL,
	lease_until TIMESTAMP WITH TIME ZONE,
	tried_at TIMESTAMP WITH TIME ZONE,
	rendered INTEGER,
	looks INTEGER NOT NULL,
	repeat BOOLEAN NOT NULL,
	again BOOLEAN DEFAULT false NOT NULL,
	reference TEXT,
	digest VARCHAR(36),
	reason TEXT NOT NULL,
	CONSTRAINT pk_outbox PRIMARY KEY (id),
	CONSTRAINT uq_outbox_incident_id_channel_target_operation_revision UNIQUE (incident_id, channel, target, operation, revision),
	CONSTRAINT fk_outbox_incident_id_incident FOREIGN KEY(incident_id) REFERENCES incident (id),
	CONSTRAINT fk_outbox_digest_incident FOREIGN KEY(digest) REFERENCES incident (id)
);

CREATE INDEX ix_outbox_digest ON outbox (digest);

CREATE INDEX ix_outbox_state ON outbox (state, not_before);

CREATE TABLE statistics_trial (
	run_id INTEGER NOT NULL,
	proofs INTEGER NOT NULL,
	scans INTEGER NOT NULL,
	disagreements INTEGER NOT NULL,
	CONSTRAINT pk_statistics_trial PRIMARY KEY (run_id),
	CONSTRAINT fk_statistics_trial_run_id_check_run FOREIGN KEY(run_id) REFERENCES check_run (id)
)
