"""A language model on the device: conversations side by side, a token each in every step."""

from asyncgpu_tutor.language.conversations import Conversations as Conversations
from asyncgpu_tutor.language.slots import Slots as Slots
from asyncgpu_tutor.language.slots import chances as chances
from asyncgpu_tutor.language.slots import slots as slots
