"""The portal: a static site with a page for every product, which shows unknown states as unknown.

`contracts`, `store_queries` and `product` read contracts and store; `lists`, `product_page` and `formatting`
turn them into template values; `pages` renders the templates; `build` and `output` write the site.
"""
