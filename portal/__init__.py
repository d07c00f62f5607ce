"""The portal: a static site in which everybody can look at every product, honest about what is not known.

`facts` asks the contracts and the store, `views` turn facts into the plain values of one screen, templates
lay these out, and `writing` puts the pages where they belong.
"""
