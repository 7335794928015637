import java.util.ArrayList;
import java.util.List;

/**
 * Acts at random on a broker for a while, then only keeps what it began alive, until it is killed.
 * Arguments: host:port, seed, seconds, release, then the names of the acts' classes. Says what it
 * did as JSON lines, and a last line "holding still" when no more records are to be expected.
 */
public final class RandomActs {
    public static void main(String[] arguments) throws Exception {
        Stage stage = new Stage(arguments[0], Long.parseLong(arguments[1]), arguments[3]);
        stage.open();
        List<Act> acts = new ArrayList<>();
        for (int each = 4; each < arguments.length; each++) {
            acts.add((Act) Class.forName(arguments[each]).getDeclaredConstructor().newInstance());
        }
        long end = System.currentTimeMillis() + 1000 * Long.parseLong(arguments[2]);
        while (System.currentTimeMillis() < end) {
            Act act = stage.any(acts);
            try {
                act.perform(stage);
            } catch (Exception | LinkageError refused) {
                stage.said(act, "refused: " + refused);
            }
            Thread.sleep(stage.random.nextInt(250));
        }
        stage.holding = true;
        System.out.println("holding still");
        Thread.currentThread().join();
    }
}
