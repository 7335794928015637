import com.fasterxml.jackson.databind.ObjectMapper;

/** Commits in the words of clients before 2.1, which said how long an offset was to be kept. */
public final class OldCommits implements Act {
    private static final short WITH_RETENTION = 2;

    @Override
    public void perform(Stage stage) throws Exception {
        String group = stage.onceIn(3) ? stage.any(Stage.CONSUMER) : stage.any(Stage.SIMPLE);
        long retention = stage.anyOf(-1L, 1_000L, 30_000L, 3_600_000L, Long.MAX_VALUE);
        ObjectMapper json = new ObjectMapper();
        String request = "{\"groupId\": " + json.writeValueAsString(group)
            + ", \"generationIdOrMemberEpoch\": -1, \"memberId\": \"\""
            + ", \"retentionTimeMs\": " + retention
            + ", \"topics\": [{\"name\": \"" + stage.any(Stage.TOPICS) + "\", \"partitions\": ["
            + "{\"partitionIndex\": " + stage.random.nextInt(4)
            + ", \"committedOffset\": " + stage.random.nextInt(1000)
            + ", \"committedMetadata\": " + json.writeValueAsString(stage.text()) + "}]}]}";
        stage.said(this, "commits " + group + " for " + retention + " ms");
        try (Wire wire = new Wire(stage.bootstrap)) {
            wire.ask("OffsetCommit", WITH_RETENTION, json.readTree(request));
        }
    }
}
