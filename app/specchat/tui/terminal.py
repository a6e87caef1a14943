"""What terminals send that Textual's drivers don't bear."""

from textual.driver import Driver
from textual.message import Message
from textual.messages import InBandWindowResize


def forgiving(driver: type[Driver]) -> type[Driver]:
    """The same driver for terminals that get things wrong.

    Bytes that are no UTF-8, as old mouse reports are, don't end the app: they are dropped, and reading goes on. And no
    terminal is asked to report its size as keys: Textual then takes the mouse to be counted in pixels, and where the
    terminal goes on in cells, every click lands in the upper left corner.
    """
    if not hasattr(driver, "run_input_thread"):  # Windows hands over characters
        return driver

    class Forgiving(driver):  # type: ignore[misc, valid-type]
        def run_input_thread(self) -> None:
            while True:
                try:
                    super().run_input_thread()
                    return
                except UnicodeDecodeError:
                    continue

        def process_message(self, message: Message) -> None:
            if not isinstance(message, InBandWindowResize):
                super().process_message(message)

    return Forgiving
