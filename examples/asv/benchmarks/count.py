from words import count


class Count:
    params = [[0, 200, 2000]]
    param_names = ["length"]

    def setup(self, length):
        if length == 0:
            raise NotImplementedError("nothing to count")
        self.text = " ".join(f"word{i * i % 211}" for i in range(length))

    def time_count(self, length):
        count(self.text)


class Kept:
    def setup_cache(self):
        return " ".join(f"word{i}" for i in range(500))

    def time_kept(self, text):
        count(text)

    def track_words(self, text):
        return len(count(text))
