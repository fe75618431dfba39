class FilterModule:
    def filters(self):
        return {"shout": lambda text: str(text).upper()}
