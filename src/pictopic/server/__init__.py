"""The REST server: what `PictureModel` answers, over HTTP.

`app` puts the parts together, and `run` listens.  `routers/` has the addresses, by resource: they ask the model, and
`schemas` describes their JSON.  `security` and `uploads` refuse what may not come in, `queue` bounds the work, `cache`
keeps what is asked again, and `served_model` swaps the model for a newer one.
"""
