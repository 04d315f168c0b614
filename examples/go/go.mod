module words

go 1.19
