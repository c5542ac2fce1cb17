"""Small matters of language that reports share."""

__all__ = ['friction_label', 'sentence']


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a stop at its end."""
    return text[:1].upper() + text[1:] + ('' if text.endswith(('.', '!', '?')) else '.')


def friction_label(name: str) -> str:
    """Return a friction model's name as people say it: Coulomb + viscous + offset."""
    words = name.replace('daemi_heimann', 'Daemi-Heimann').replace('_', '+').split('+')
    return ' + '.join(word.capitalize() if word in ('coulomb', 'stribeck') else word for word in words)
