"""Has a metaclass that answers every question with an exception."""

from standards_mcp import Plugin


class Meta(type(Plugin)):
    def __instancecheck__(cls, instance):
        raise GeneratorExit

    def __subclasscheck__(cls, subclass):
        raise GeneratorExit

    def __getattribute__(cls, name):
        raise KeyboardInterrupt(name)


class PosesPlugin(Plugin, metaclass=Meta):
    pass
