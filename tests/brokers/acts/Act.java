/** One kind of act; each performance does something of that kind, chosen at random. */
public interface Act {
    void perform(Stage stage) throws Exception;
}
