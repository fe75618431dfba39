class FilterModule:
    def filters(self):
        return {"whisper": lambda text: str(text).lower()}
