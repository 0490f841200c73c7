"""The REST server: what `PictureModel` answers, over HTTP.

It holds no logic: `routes` asks the model and puts its answers into JSON.  Around that, `security`, `throttle` and
`connections` keep out what should not come in, `queue` bounds the work, `served_model` swaps the model for a newer one.
"""
